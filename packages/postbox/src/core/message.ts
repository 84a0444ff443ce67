import type { Headers } from './headers.ts'
import type { Schedule } from './schedule.ts'

/** What the application wants to send, validated and encoded: nothing after this point can be wrong about the input. */
export interface Draft {
  readonly id: string
  readonly queue: string
  readonly key: string | null
  /** Its queue is in the order of keys, and it has one or may replace a timer that has. @default false */
  readonly isOrdered?: boolean
  readonly timerId: string | null
  /** What happens when the timer already waits; `none` without a timer. */
  readonly conflict: Conflict
  readonly body: Uint8Array
  readonly headers: Headers | null
  readonly schedule: Schedule
  readonly generation: number | null
}

export type Conflict = 'none' | 'keep' | 'replace'

/** What publishing returns. `id` is the message's public identity; `seq` its place in the table, opaque, for logs. */
export interface Receipt {
  readonly id: string
  readonly seq: string
}

/** What a handler receives; immutable. */
export interface Message<Queue extends string = string, Body = unknown> {
  readonly id: string
  readonly seq: string
  readonly queue: Queue
  readonly key: string | null
  readonly body: Body
  readonly headers: Headers
  readonly correlationId: string
  /** 1 on the first run. */
  readonly attempt: number
  /** Times the message was claimed, this one included. */
  readonly deliveries: number
  readonly createdAt: Date
  readonly generation: number | null
  /**
   * In an ordered queue: the id of the message of its key that died right before it and was skipped, by `failingHead: 'skip'` or by an operator. Told to what waited
   * when that happened; null: none did, or this one was published later.
   */
  readonly afterDead: string | null
  /** The body's bytes as they are stored. */
  readonly raw: Uint8Array
}

/** A message that waits in the table, as `pending` sees it: not claimed, not changed. */
export interface PendingMessage {
  readonly id: string
  readonly seq: string
  readonly queue: string
  readonly key: string | null
  readonly timerId: string | null
  /** Decoded, not validated; `undefined` when the bytes are not what their content type says. */
  readonly body: unknown
  readonly headers: Headers
  readonly correlationId: string
  /** Runs that failed so far. */
  readonly attempts: number
  readonly deliveries: number
  readonly createdAt: Date
  /** When it becomes due; null: at once. */
  readonly dueAt: Date | null
  /** True while somebody holds the lease. */
  readonly inFlight: boolean
  readonly generation: number | null
  readonly raw: Uint8Array
}
