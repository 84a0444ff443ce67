import { OutboxError } from './errors.ts'
import type { Headers } from './headers.ts'
import type { Instant } from './schedule.ts'
import { isUuid } from './uuid.ts'
import { anything, assertOptions, type Check, expected, name, oneOf, type Shape } from './validate.ts'

/** When the message becomes due: at once, after a delay, or at a time. */
export type Due =
  | { readonly delayMs?: number | undefined; readonly at?: undefined }
  | { readonly delayMs?: undefined; readonly at: Instant | undefined }

export type PublishOptions<TimerId extends string = string> = Due & {
  /** Messages of one key belong together (an order's id, say). At most 1,024 bytes. */
  readonly key?: string | undefined
  readonly headers?: Headers | undefined
  /** Ties messages of one business transaction together. @default the header `correlation-id`, else the message's id */
  readonly correlationId?: string | undefined
  /** The label of a body given as bytes. @default 'application/octet-stream' */
  readonly contentType?: string | undefined
  /** At most one waiting message per queue and `timerId`: publishing again is answered by null. */
  readonly timerId?: TimerId | undefined
  /** What happens when the timer already waits: it is kept, or its body and due time are replaced. @default 'keep' */
  readonly onConflict?: 'keep' | 'replace' | undefined
  /** The message's identity, a UUID of yours. @default a new UUIDv7 */
  readonly id?: string | undefined
}

// Times and headers have codes of their own, and are checked where they are resolved.
const shape = {
  key: name(1024),
  headers: anything,
  correlationId: name(1024),
  contentType: name(255),
  delayMs: anything,
  at: anything,
  timerId: name(1024),
  onConflict: oneOf('keep', 'replace'),
  id: (value) => (isUuid(value) ? null : 'to be a UUID'),
} satisfies Shape & Record<keyof PublishOptions, Check>

export function assertPublishOptions(given: PublishOptions | undefined): void {
  assertOptions(given, shape, 'the options of publish')
  if (given?.onConflict === undefined || given.timerId !== undefined) return
  throw new OutboxError(
    'OUTBOX_INVALID_OPTION',
    expected('onConflict', 'to come with a `timerId`', given.onConflict),
  )
}
