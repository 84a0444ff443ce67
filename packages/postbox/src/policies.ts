// Functions of our own and not only names: what a barrel passes on and the runtime uses, too, a bundler gives to those who only publish.
import * as retry from './core/retry.ts'
import { makesPolicy } from './core/subscribe-options.ts'

/** Delays that grow by a factor, up to a cap, each drawn from zero on: the default. */
export function exponential(options?: retry.ExponentialOptions): retry.RetryPolicy {
  return retry.exponential(options)
}

/** Delays that grow by a step. */
export function linear(options: retry.LinearOptions): retry.RetryPolicy {
  return retry.linear(options)
}

/** The same delay each time. */
export function constant(options: retry.ConstantOptions): retry.RetryPolicy {
  return retry.constant(options)
}

/** The first failure is the last. */
export function noRetry(): retry.RetryPolicy {
  return retry.noRetry()
}

/** Six runs with five delays between them: up to 1, 2, 4, 8 and 16 seconds. */
export function adr054(): retry.RetryPolicy {
  return retry.adr054()
}

const calls = [
  [exponential, 'exponential()'],
  [linear, 'linear({ initialMs, stepMs })'],
  [constant, 'constant({ delayMs })'],
  [noRetry, 'noRetry()'],
  [adr054, 'adr054()'],
] as const

for (const [make, call] of calls) Object.defineProperty(make, makesPolicy, { value: call })
