import type { RetryPolicy } from './retry.ts'
import {
  assertOptions,
  type Check,
  callable,
  isRecord,
  name,
  oneOf,
  orNull,
  type Shape,
  wholeNumber,
} from './validate.ts'

/** Any class can be told by instanceof, whatever its constructor takes. */
// biome-ignore lint/suspicious/noExplicitAny: so its parameters are anything
export type ErrorClass = abstract new (...given: any[]) => unknown

/** What a failure means: never again, or perhaps later. */
export type Verdict = 'terminal' | 'transient'

export interface SubscribeOptions {
  /** The handler's name in the log. @default the function's name, else the queue */
  readonly name?: string
  /** Handlers at once in this process. @default 10 */
  readonly concurrency?: number
  /** How long a claimed message belongs to this process, unless it is renewed: it is, while the handler runs. @default 30_000 */
  readonly leaseMs?: number
  /** When a handler is given up: its signal aborts, and it counts as failed. @default none */
  readonly timeoutMs?: number
  /** When a failed message is run again, and how often. @default exponential(): 10 runs, waits of 1 s doubling to 5 min, each drawn from zero on */
  readonly retry?: RetryPolicy
  /** Deliveries that may end without an outcome (the process died, the lease was lost) before the message is dead. null: any number. @default 5 */
  readonly maxDeliveries?: number | null
  /**
   * 'auto': returning acknowledges, throwing asks the retry policy. 'reject-on-error': throwing rejects. 'manual': the handler must decide by
   * its context; returning without is a rejection. @default 'auto'
   */
  readonly ack?: 'auto' | 'reject-on-error' | 'manual'
  /** Errors of these classes are terminal: the message is dead at once. */
  readonly terminalErrors?: readonly ErrorClass[]
  /** Asked first; undefined: the usual rules. */
  readonly classify?: (error: unknown) => Verdict | undefined
  /** Copies headers of the message onto its follow-on messages: all, or those named. Never the content type. @default false */
  readonly propagateHeaders?: boolean | readonly string[]
  /**
   * In a queue with `order: 'key'`, what becomes of a key whose first message fails for good. 'block': it does not: it is tried again, ever later, until it
   * succeeds, whatever the policy says. 'park': it is a dead letter, and its key waits until somebody decides (`outbox.keys`). 'skip': it is a dead letter, and its key
   * goes on. What is rejected, or kills its process, is a dead letter in any case, and parks its key unless it is to be skipped. @default 'block'
   */
  readonly failingHead?: 'block' | 'park' | 'skip'
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
  /** null: the default. */
  readonly retry: RetryPolicy | null
  readonly maxDeliveries: number | null
  readonly ack: 'auto' | 'reject-on-error' | 'manual'
  readonly terminalErrors: readonly ErrorClass[]
  readonly classify: ((error: unknown) => Verdict | undefined) | null
  readonly propagateHeaders: boolean | readonly string[]
  readonly failingHead: 'block' | 'park' | 'skip'
  /** null: by the time that handlers take. */
  readonly prefetch: number | null
  readonly flush: 'natural' | 'each'
  readonly maxBatch: number
  readonly pollMs: { readonly min: number; readonly max: number }
}

/**
 * On every function that makes a policy: how it is called. Untyped code may give the function itself, and what that answers is no delay.
 * A mark, and not the functions: a service that only publishes does not carry them.
 */
export const makesPolicy: unique symbol = Symbol.for('postbox.makes-policy') as never

export const subscribeShape = {
  name: name(255),
  concurrency: wholeNumber(1, 10_000),
  leaseMs: wholeNumber(1_000, 86_400_000),
  timeoutMs: wholeNumber(1, 86_400_000),
  retry: policyProblem,
  maxDeliveries: orNull(wholeNumber(1, 1_000_000)),
  ack: oneOf('auto', 'reject-on-error', 'manual'),
  terminalErrors: listOf(classLike, 'classes'),
  classify: callable,
  propagateHeaders: (value) =>
    typeof value === 'boolean' ? null : listOf(name(1024), 'header names', 'true, false or ')(value),
  failingHead: oneOf('block', 'park', 'skip'),
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
  retry: null,
  maxDeliveries: 5,
  ack: 'auto',
  terminalErrors: [],
  classify: null,
  propagateHeaders: false,
  failingHead: 'block',
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
  return settingsOf(given, base)
}

/** The options, which were checked, over what the outbox says for all. */
export function settingsOf(given: SubscribeOptions | undefined, base: SubscribeSettings): SubscribeSettings {
  return Object.freeze(filled(base, given))
}

/** Options over their defaults: null is a value, undefined is none. Names that the defaults do not have are left out. */
export function filled<T extends object>(defaults: T, given: object = {}): T {
  const said = given as Readonly<Record<string, unknown>>
  const all = Object.entries(defaults).map(([name, fallback]) => [
    name,
    said[name] === undefined ? fallback : said[name],
  ])
  return Object.fromEntries(all)
}

/** What instanceof can be asked with: an arrow function, which classify may have been meant by, cannot. */
function classLike(value: unknown): string | null {
  return typeof value === 'function' && value.prototype !== undefined ? null : 'to be a class'
}

function listOf(each: Check, what: string, orElse = ''): Check {
  return (value) =>
    Array.isArray(value) && Array.from(value, each).every((problem) => problem === null)
      ? null
      : `to be ${orElse}an array of ${what}`
}

function policyProblem(value: unknown): string | null {
  if (typeof value !== 'function') return 'to be a function, such as exponential({ … })'
  const call = (value as { readonly [makesPolicy]?: string })[makesPolicy]
  return call === undefined ? null : `to be a policy (call it: ${call})`
}

function pollProblem(value: unknown): string | null {
  const { min, max } = isRecord(value) ? value : {}
  const problem = wholeNumber(1, 3_600_000)(min) ?? wholeNumber(1, 3_600_000)(max)
  if (problem !== null) return 'to be { min, max }, each a whole number from 1 to 3600000'
  return (min as number) <= (max as number) ? null : 'to have `min` not above `max`'
}
