/** A protocol's client half: what `protocol.client()` gives in Python, and protocol files hold. */
export type Description = { readonly [name: string]: unknown };

/**
 * What a user has, as the protocol takes it (`Client.takes` says what that is): an item, a text, a
 * record as a list or by names, a list of items; with a schema, values in labels and units.
 *
 * Integers are safe integers or BigInts. Of a schema's values null, undefined and NaN are missing;
 * dates are texts such as "2024-01-31": a Date is an instant, whose day depends on the time zone.
 */
export type Value =
  | null
  | undefined
  | boolean
  | number
  | bigint
  | string
  | ReadonlySet<Value>
  | readonly Value[]
  | { readonly [name: string]: Value };

/** Makes reports of one protocol. */
export interface Client {
  /**
   * A private report of one user: eight bytes that name the protocol, and the payload.
   *
   * Each call draws anew, and tells as much again: ask each user once, and keep the report.
   *
   * @returns null if the value is missing and such users do not report.
   * @throws ClientError for a value that the protocol does not take; nothing was drawn.
   */
  report(value: Value): Uint8Array | null;

  /** The protocol's name. */
  readonly protocol: string;

  /** The privacy loss of a report at most, in decimal. */
  readonly epsilon: string;

  /** By how much a report changes anybody's odds at most, in decimal: e^epsilon. */
  readonly odds: string;

  /** What names the protocol in front of a report: 16 hexadecimal digits. */
  readonly wire: string;

  /** What a value is: see `docs/wire.md`. */
  readonly takes: Description;
}

/**
 * The client of a protocol.
 *
 * @param json A protocol file or a description: its text, or the object that this is.
 * @param words Gives uniform integers 0n .. 2^64 - 1, for tests; by default those of
 *   `crypto.getRandomValues`.
 * @throws ClientError for a file that is damaged, was changed or is of an unknown kind, and where
 *   there is no source of randomness, or integers of 64 bits are computed wrongly.
 */
export function load(json: string | Description, words?: () => bigint): Client;

/** Makes the reports of one user on many days, from those that the device keeps. */
export interface MemoisedClient extends Client {
  /**
   * The report of one day: ask once a day, and send it once.
   *
   * A value that is not among those kept gets a permanent report, which has been written to the
   * store when this returns. If there are as many as there may be, the report is about the newest
   * of these instead.
   *
   * @returns null if the value is missing and such users do not report.
   * @throws ClientError for a value that the protocol does not take, and for a state that is lost
   *   or damaged; nothing was drawn. What the store throws is thrown on, and no report made.
   */
  report(value: Value): Uint8Array | null;

  /** What all reports about one value together reveal at most, in decimal. */
  readonly epsilon: string;

  /** What the reports of one day reveal at most, in decimal. */
  readonly day: string;

  /** Which start of this user's device it is, from 1 on; it may be sent with the reports. */
  readonly start: number;
}

/** Where a device keeps its state, a text that is as secret as the values. */
export interface Store {
  /** What was written last; null or undefined: nothing ever, or it is lost. */
  read(): string | null | undefined;

  /** Replaces it, in one step: it is durable when this returns. */
  write(text: string): void;
}

/**
 * The client of a question that is asked every day, with the state of one user's device.
 *
 * @param json What `Memoised.client` gives in Python: its text, or the object that this is.
 * @param store Of this user and this question, used by one page at a time.
 * @param start Which start of this user's device it is, 1 for the first, where the store has
 *   nothing yet. A device whose state was lost must be given another number, by whoever counts the
 *   starts of each user: its reports reveal as much again. Undefined: there must be a state.
 * @param words As for `load`.
 * @throws ClientError as `load`; and for a state that is damaged, of another question or of another
 *   start, and where there is none and no start, or one beyond the largest.
 */
export function loadMemoised(
  json: string | Description,
  store: Store,
  start?: number,
  words?: () => bigint,
): MemoisedClient;

/** A report as text: standard base64 with padding. */
export function base64(bytes: Uint8Array): string;

/**
 * A file of reports (`.ldp`), of which a collector counts each such file once.
 *
 * @param client Of the reports.
 * @param reports Of users; null, of those who do not report, is left out.
 * @throws ClientError for what is no report of this client.
 */
export function batch(client: Client, reports: Iterable<Uint8Array | null>): Uint8Array;

/** What no report can be made from: a damaged or foreign file, or a value outside. */
export class ClientError extends Error {}
