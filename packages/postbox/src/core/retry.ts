import { describeError } from './describe-error.ts'
import { longestMs } from './duration.ts'
import { OutboxError } from './errors.ts'
import { ignoreRejection } from './ignore-rejection.ts'
import { runtimeError } from './runtime-errors.ts'
import { show } from './show.ts'
import {
  type Check,
  expected,
  isRecord,
  optionProblems,
  orNull,
  type Shape,
  wholeNumber,
} from './validate.ts'

/** A run that failed, as a retry policy sees it. */
export interface Failure {
  /** Runs that failed, this one included: 1 the first time. */
  readonly attempt: number
  /** What was thrown, or given to `context.retry`. */
  readonly error: unknown
  /** When the first run failed, and when this one did. By the database's clock. */
  readonly firstAttemptAt: Date
  readonly lastAttemptAt: Date
  /** In [0, 1): draw once for each number that you need. */
  readonly random: () => number
}

/** How long to wait before the next run, in milliseconds; null: there is none, and the message is dead. */
export interface RetryPolicy {
  (failure: Failure): number | null
  /** How many runs it allows; absent: it does not say, null: any number. */
  readonly maxAttempts?: number | null
}

/**
 * How chance changes a delay, so that messages which failed together do not return together. 'full': anything from zero to it;
 * 'equal': from half of it to all of it; a number from 0 to 2: so much of it, half below and half above (0.2: ±10 %).
 */
export type Jitter = 'none' | 'full' | 'equal' | number

export interface RetryLimits {
  /** Runs in all, the first one included; null: any number. @default 10 */
  readonly maxAttempts?: number | null
  /**
   * From the first failure to the next run: one that would come later is not made. Holds beside `maxAttempts`; give null there if time
   * alone should count. null: any time. @default null
   */
  readonly maxTotalMs?: number | null
}

export interface ExponentialOptions extends RetryLimits {
  /** The first delay. @default 1_000 */
  readonly initialMs?: number
  /** Each delay is the one before times this. @default 2 */
  readonly factor?: number
  /** No delay is longer; null: a hundred years. @default 300_000 */
  readonly maxMs?: number | null
  /** @default 'full' */
  readonly jitter?: Jitter
}

export interface LinearOptions extends RetryLimits {
  /** The first delay. */
  readonly initialMs: number
  /** Each delay is so much longer than the one before. */
  readonly stepMs: number
  /** @default 'none' */
  readonly jitter?: Jitter
}

export interface ConstantOptions extends RetryLimits {
  readonly delayMs: number
  /** @default 'none' */
  readonly jitter?: Jitter
}

const positive: Check = (value) =>
  typeof value === 'number' && value > 0 && value < Number.POSITIVE_INFINITY
    ? null
    : 'to be a finite number above 0'

const notNegative: Check = (value) =>
  value === 0 ? null : positive(value) && 'to be a finite number, 0 or more'

const jitterCheck: Check = (value) => {
  const isNamed = value === 'none' || value === 'full' || value === 'equal'
  const isFactor = typeof value === 'number' && value >= 0 && value <= 2
  return isNamed || isFactor ? null : "to be 'none', 'full', 'equal' or a number from 0 to 2"
}

const limits = { maxAttempts: orNull(wholeNumber(1)), maxTotalMs: orNull(positive), jitter: jitterCheck }

const exponentialShape = {
  initialMs: positive,
  factor: positive,
  maxMs: orNull(positive),
  ...limits,
} satisfies Shape & Record<keyof ExponentialOptions, Check>

const linearShape = {
  initialMs: positive,
  stepMs: notNegative,
  ...limits,
} satisfies Shape & Record<keyof LinearOptions, Check>

const constantShape = { delayMs: positive, ...limits } satisfies Shape & Record<keyof ConstantOptions, Check>

const defaultMaxAttempts = 10

/** Delays that grow by a factor, up to a cap. */
export function exponential(options: ExponentialOptions = {}): RetryPolicy {
  assertPolicy(options, exponentialShape, { place: 'the options of exponential', required: [] })
  const { initialMs = 1_000, factor = 2, maxMs = 300_000, jitter = 'full' } = options
  return policyOf({ ...limitsOf(options), jitter, maxMs, rawMs: (before) => initialMs * factor ** before })
}

/** Delays that grow by a step. */
export function linear(options: LinearOptions): RetryPolicy {
  const required = ['initialMs', 'stepMs'] as const
  assertPolicy(options, linearShape, { place: 'the options of linear', required })
  const { initialMs, stepMs, jitter = 'none' } = options
  return policyOf({
    ...limitsOf(options),
    jitter,
    maxMs: null,
    rawMs: (before) => initialMs + stepMs * before,
  })
}

/** The same delay each time. */
export function constant(options: ConstantOptions): RetryPolicy {
  assertPolicy(options, constantShape, { place: 'the options of constant', required: ['delayMs'] })
  const { delayMs, jitter = 'none' } = options
  return policyOf({ ...limitsOf(options), jitter, maxMs: null, rawMs: () => delayMs })
}

/** The first failure is the last. */
export function noRetry(): RetryPolicy {
  return Object.freeze(Object.assign(() => null, { maxAttempts: 1 }))
}

/** Six runs with five delays between them: up to 1, 2, 4, 8 and 16 seconds. */
export function adr054(): RetryPolicy {
  return exponential({ initialMs: 1_000, factor: 2, maxMs: 300_000, jitter: 'full', maxAttempts: 6 })
}

// Pure, for bundlers: who only publishes does not carry it.
export const defaultRetry: RetryPolicy = /* @__PURE__ */ exponential()

export type NextDelay =
  | { readonly kind: 'delay'; readonly delayMs: number }
  | { readonly kind: 'terminal' }
  /** The policy threw, or answered with something else: there is no next run, and somebody should know why. */
  | { readonly kind: 'broken'; readonly error: OutboxError }

/** Asks a policy, which may be anybody's. Never throws. */
export function nextDelay(policy: RetryPolicy, failure: Failure): NextDelay {
  let answer: unknown
  try {
    answer = policy(failure)
  } catch (cause) {
    return broken(`the retry policy threw ${show(describeError(cause))}`, { cause })
  }
  if (answer === null) return { kind: 'terminal' }
  if (typeof answer === 'number' && answer >= 0 && answer < Number.POSITIVE_INFINITY) {
    return { kind: 'delay', delayMs: Math.min(answer, longestMs) }
  }
  ignoreRejection(answer)
  return broken(`expected the retry policy to return milliseconds (0 or more) or null, got ${show(answer)}`)
}

function broken(sentence: string, options?: ErrorOptions): NextDelay {
  return { kind: 'broken', error: runtimeError('OUTBOX_INVALID_POLICY', sentence, options) }
}

interface Plan {
  /** The delay before chance and cap, by the number of delays before it. May overflow. */
  readonly rawMs: (before: number) => number
  readonly maxMs: number | null
  readonly jitter: Jitter
  readonly maxAttempts: number | null
  readonly maxTotalMs: number | null
}

function policyOf({ rawMs, maxMs, jitter, maxAttempts, maxTotalMs }: Plan): RetryPolicy {
  const capMs = Math.min(maxMs ?? longestMs, longestMs)
  const policy = ({ attempt, firstAttemptAt, lastAttemptAt, random }: Failure): number | null => {
    if (maxAttempts !== null && attempt >= maxAttempts) return null
    const delayMs = jittered(rawMs(Math.max(0, attempt - 1)), capMs, { jitter, random })
    const elapsedMs = lastAttemptAt.getTime() - firstAttemptAt.getTime()
    return maxTotalMs !== null && elapsedMs + delayMs > maxTotalMs ? null : delayMs
  }
  // What is limited by time alone does not say how many runs: "any number" would be wrong, too.
  const isTimed = maxAttempts === null && maxTotalMs !== null
  return Object.freeze(isTimed ? policy : Object.assign(policy, { maxAttempts }))
}

/** Named jitters spread what the cap has left: at the cap all messages would else come back together. */
function jittered(
  rawMs: number,
  capMs: number,
  { jitter, random }: { readonly jitter: Jitter; readonly random: () => number },
): number {
  const cappedMs = Math.min(rawMs, capMs)
  switch (jitter) {
    case 'none':
      return cappedMs
    case 'full':
      return cappedMs * random()
    case 'equal':
      return cappedMs * (0.5 + random() / 2)
    default:
      // An infinite delay times a chance of zero would be no number.
      return Math.min(Math.min(rawMs, Number.MAX_VALUE) * (1 + jitter * (random() - 0.5)), capMs)
  }
}

function limitsOf({ maxAttempts, maxTotalMs = null }: RetryLimits): Pick<Plan, 'maxAttempts' | 'maxTotalMs'> {
  return { maxAttempts: maxAttempts === undefined ? defaultMaxAttempts : maxAttempts, maxTotalMs }
}

/** One error for all that is wrong, and for what is missing. */
function assertPolicy(
  given: unknown,
  shape: Shape,
  { place, required }: { readonly place: string; readonly required: readonly string[] },
): void {
  const options = isRecord(given) ? given : null
  const absent = options === null ? [] : required.filter((name) => options[name] === undefined)
  const problems = [
    ...optionProblems(given, shape, place),
    ...absent.map((name) => expected(name, shape[name]?.(undefined) ?? 'to be given', undefined)),
  ]
  if (problems.length > 0) throw new OutboxError('OUTBOX_INVALID_OPTION', problems.join('; '))
}
