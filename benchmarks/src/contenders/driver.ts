import type { ClientBase } from 'pg'

/** What every message says: its number, by which it is counted, and as much else as makes 256 bytes of JSON. */
export interface Body {
  readonly n: number
  /** When it is due, in milliseconds since 1970: only of timers. */
  readonly at?: number
  readonly pad: string
}

export type Handler = (body: Body) => void | Promise<void>

/** One contender at one tuning, on one database. The names of tables and queues are its own affair. */
export interface Driver extends AsyncDisposable {
  /** Makes its tables in an empty database. */
  setup(): Promise<void>
  /** Opens what publishing needs; publishes nothing. `connections` is how many will publish at once. */
  openPublisher(connections: number): Promise<void>
  /** All or none, committed when it resolves. */
  publishMany(bodies: readonly Body[]): Promise<void>
  /** In the transaction of the client, by whoever can; others have a connection of their own, and commit. */
  publishOne(client: ClientBase, body: Body): Promise<void>
  /** Each at its own `at`. */
  publishTimers(bodies: readonly Body[]): Promise<void>
  /** Opens what consuming needs; consumes nothing. */
  openConsumer(): Promise<void>
  /** Runs until it is disposed. */
  consume(handler: Handler): Promise<void>
}

export interface DriverInput {
  readonly url: string
  readonly settings: Readonly<Record<string, unknown>>
}

const bytes = 256

export function bodyOf(n: number, at?: number): Body {
  const head = at === undefined ? { n } : { n, at }
  const bare = JSON.stringify({ ...head, pad: '' })
  return { ...head, pad: 'x'.repeat(bytes - bare.length) }
}

export function bodiesOf(from: number, count: number): readonly Body[] {
  return Array.from({ length: count }, (_, index) => bodyOf(from + index))
}

/** Each queue's part, in turn; nothing is copied where there is one queue. */
export function byQueue(
  bodies: readonly Body[],
  queues: number,
): readonly (readonly [number, readonly Body[]])[] {
  if (queues === 1) return [[0, bodies]]
  const parts = Array.from({ length: queues }, (_, index): [number, Body[]] => [index, []])
  for (const body of bodies) parts[body.n % queues]![1].push(body)
  return parts.filter(([, part]) => part.length > 0)
}
