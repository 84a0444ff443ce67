import { assertOptions, type Check, expected, isRecord, name, type Shape, wholeNumber } from './validate.ts'

export interface SubscribeOptions {
  /** The handler's name in the log. @default the function's name, else the queue */
  readonly name?: string
  /** Handlers at once in this process. @default 10 */
  readonly concurrency?: number
  /** How long a claimed message belongs to this process. A handler must be done by then. @default 30_000 */
  readonly leaseMs?: number
  /** How often an idle subscriber looks: `min` at first, doubling up to `max`. @default { min: 20, max: 5_000 } */
  readonly pollMs?: { readonly min: number; readonly max: number }
}

export interface SubscribeSettings {
  readonly name: string | undefined
  readonly concurrency: number
  readonly leaseMs: number
  readonly pollMs: { readonly min: number; readonly max: number }
}

export const subscribeShape = {
  name: name(255),
  concurrency: wholeNumber(1, 10_000),
  leaseMs: wholeNumber(1_000, 86_400_000),
  pollMs: pollProblem,
} satisfies Shape & Record<keyof SubscribeOptions, Check>

const defaults: SubscribeSettings = {
  name: undefined,
  concurrency: 10,
  leaseMs: 30_000,
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
