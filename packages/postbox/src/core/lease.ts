import type { Headers } from './headers.ts'

/** The right to settle one message until it expires, proved by its token; with the row as it is stored. */
export interface Lease {
  readonly token: string
  readonly id: string
  readonly seq: string
  readonly queue: string
  readonly key: string | null
  /** It has a key, and its queue is in the order of keys: nothing behind it may run before it is gone. */
  readonly isOrdered?: boolean
  /** The message of its key that died right before it, and was skipped while it waited. Absent or null: none did. */
  readonly afterDead?: string | null
  /** The timer that fired; null: it was none. Its name is free while the message is in flight. */
  readonly timerId: string | null
  readonly body: Uint8Array
  readonly headers: Headers
  /** 1 on the first run. */
  readonly attempt: number
  /** This one included, whether it is counted already or not. */
  readonly deliveries: number
  readonly createdAt: Date
  /** The first run that failed; null: none has. */
  readonly firstAttemptAt: Date | null
  /** When it was claimed. By the database's clock, like all times here. */
  readonly claimedAt: Date
  readonly generation: number | null
}
