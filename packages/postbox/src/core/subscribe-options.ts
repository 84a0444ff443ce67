import {
  assertOptions,
  type Check,
  expected,
  isRecord,
  name,
  oneOf,
  type Shape,
  wholeNumber,
} from './validate.ts'

export interface SubscribeOptions {
  /** The handler's name in the log. @default the function's name, else the queue */
  readonly name?: string
  /** Handlers at once in this process. @default 10 */
  readonly concurrency?: number
  /** How long a claimed message belongs to this process, unless it is renewed: it is, while the handler runs. @default 30_000 */
  readonly leaseMs?: number
  /** When a handler is given up: its signal aborts, and it counts as failed. @default none */
  readonly timeoutMs?: number
  /** How many messages are claimed ahead of free slots. @default 20 ms of work, by the time that handlers take */
  readonly prefetch?: number
  /** 'each': a statement for each message that is done, instead of one for all that are done by then. @default 'natural' */
  readonly flush?: 'natural' | 'each'
  /** The most messages that one statement settles. @default 1_000 */
  readonly maxBatch?: number
  /**
   * How often an idle subscriber looks when nobody wakes it: `min` at first, doubling up to `max`. Where LISTEN works only `max` counts, as
   * the fallback. Timers that are more than ten seconds away are found by such a look: with a `max` above 10_000 they may be late.
   * @default { min: 20, max: 5_000 }
   */
  readonly pollMs?: { readonly min: number; readonly max: number }
}

export interface SubscribeSettings {
  readonly name: string | undefined
  readonly concurrency: number
  readonly leaseMs: number
  readonly timeoutMs: number | null
  /** null: by the time that handlers take. */
  readonly prefetch: number | null
  readonly flush: 'natural' | 'each'
  readonly maxBatch: number
  readonly pollMs: { readonly min: number; readonly max: number }
}

export const subscribeShape = {
  name: name(255),
  concurrency: wholeNumber(1, 10_000),
  leaseMs: wholeNumber(1_000, 86_400_000),
  timeoutMs: wholeNumber(1, 86_400_000),
  prefetch: wholeNumber(0, 10_000),
  flush: oneOf('natural', 'each'),
  maxBatch: wholeNumber(1, 10_000),
  pollMs: pollProblem,
} satisfies Shape & Record<keyof SubscribeOptions, Check>

const defaults: SubscribeSettings = {
  name: undefined,
  concurrency: 10,
  leaseMs: 30_000,
  timeoutMs: null,
  prefetch: null,
  flush: 'natural',
  maxBatch: 1_000,
  pollMs: { min: 20, max: 5_000 },
}

export function resolveSubscribeOptions(
  given: SubscribeOptions | undefined,
  base: SubscribeSettings = defaults,
): SubscribeSettings {
  assertOptions(given, subscribeShape, 'the options of subscribe')
  return Object.freeze({
    name: given?.name ?? base.name,
    concurrency: given?.concurrency ?? base.concurrency,
    leaseMs: given?.leaseMs ?? base.leaseMs,
    timeoutMs: given?.timeoutMs ?? base.timeoutMs,
    prefetch: given?.prefetch ?? base.prefetch,
    flush: given?.flush ?? base.flush,
    maxBatch: given?.maxBatch ?? base.maxBatch,
    pollMs: given?.pollMs ?? base.pollMs,
  })
}

function pollProblem(value: unknown): string | null {
  const bounds = isRecord(value) ? value : {}
  const { min, max } = bounds
  const inMin = wholeNumber(1, 3_600_000)(min)
  const inMax = wholeNumber(1, 3_600_000)(max)
  if (inMin !== null) return `to be { min, max }: ${expected('pollMs.min', inMin, min)}`
  if (inMax !== null) return `to be { min, max }: ${expected('pollMs.max', inMax, max)}`
  return (min as number) <= (max as number) ? null : 'to have `min` not above `max`'
}
