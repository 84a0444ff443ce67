import type { Headers } from './headers.ts'

/** The right to settle one message until it expires, proved by its token; with the row as it is stored. */
export interface Lease {
  readonly token: string
  readonly id: string
  readonly seq: string
  readonly queue: string
  readonly key: string | null
  /** The timer that fired; null: it was none. Its name is free while the message is in flight. */
  readonly timerId: string | null
  readonly body: Uint8Array
  readonly headers: Headers
  /** 1 on the first run. */
  readonly attempt: number
  readonly deliveries: number
  readonly createdAt: Date
  /** The first run that failed; null: none has. */
  readonly firstAttemptAt: Date | null
  /** When it was claimed. By the database's clock, like all times here. */
  readonly claimedAt: Date
  readonly generation: number | null
}
