import type { Headers } from './headers.ts'

/** The right to settle one message until it expires, proved by its token; with the row as it is stored. */
export interface Lease {
  readonly token: string
  readonly id: string
  readonly seq: string
  readonly queue: string
  readonly key: string | null
  readonly body: Uint8Array
  readonly headers: Headers
  /** 1 on the first run. */
  readonly attempt: number
  readonly deliveries: number
  readonly createdAt: Date
  readonly generation: number | null
}
