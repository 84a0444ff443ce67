import { describe, expect, test } from 'vitest'
import { constant, defaultRetry, exponential, noRetry, type RetryPolicy } from './retry.ts'
import { resolveSubscribeOptions, type SubscribeOptions } from './subscribe-options.ts'
import { type Warning, warningsOf } from './warnings.ts'

const custom: RetryPolicy = () => 1_000

function warned(options: SubscribeOptions, kind: 'each' | 'batch' = 'each'): readonly Warning[] {
  return warningsOf({
    name: 'ship',
    queues: ['orders', 'refunds'],
    settings: resolveSubscribeOptions(options),
    run: { kind },
  })
}

const codes = (options: SubscribeOptions): readonly string[] => warned(options).map(({ code }) => code)

// U-SUB-21, as far as the combinations do harm here.
describe('warningsOf', () => {
  test.each<[string, SubscribeOptions]>([
    ['the defaults', {}],
    ['a policy with a limit', { retry: exponential({ maxAttempts: 3 }) }],
    ['the default policy, given', { retry: defaultRetry }],
    ['a limit of time alone', { retry: constant({ delayMs: 1, maxAttempts: null, maxTotalMs: 5 }) }],
    ['a policy that does not say', { retry: custom }],
    ['rejecting on error', { ack: 'reject-on-error' }],
    ['rejecting on error without retries', { ack: 'reject-on-error', retry: noRetry() }],
    ['manual decisions with a policy', { ack: 'manual', retry: exponential() }],
    [
      'no retries, with deliveries counted: they count crashes, not failures',
      { retry: noRetry(), maxDeliveries: 3 },
    ],
    ['a lease shorter than the pace of looking', { leaseMs: 1_000, pollMs: { min: 20, max: 5_000 } }],
  ])('is silent about %s', (_title, options) => {
    expect(codes(options)).toEqual([])
  })

  test.each<[string, SubscribeOptions, string[]]>([
    ['a policy without a limit', { retry: exponential({ maxAttempts: null }) }, ['no_attempt_limit']],
    ['rejecting with a policy', { ack: 'reject-on-error', retry: exponential() }, ['reject_with_retry']],
    ['rejecting with a custom policy', { ack: 'reject-on-error', retry: custom }, ['reject_with_retry']],
    [
      'both',
      { ack: 'reject-on-error', retry: exponential({ maxAttempts: null }) },
      ['no_attempt_limit', 'reject_with_retry'],
    ],
  ])('warns of %s', (_title, options, expected) => {
    expect(codes(options)).toEqual(expected)
  })

  test('is silent about rejecting with a policy where a batch is handled: its errors ask the policy', () => {
    expect(warned({ ack: 'reject-on-error', retry: exponential() }, 'batch')).toEqual([])
    expect(warned({ retry: exponential({ maxAttempts: null }) }, 'batch')).toHaveLength(1)
  })

  // It may come from `defaults`, where it cannot be left out.
  test('is silenced by each of the two options that it advises', () => {
    const rejecting = { ack: 'reject-on-error', retry: exponential() } as const

    expect(warned(rejecting)[0]?.message).toContain("Give `ack: 'auto'` or `retry: noRetry()`.")
    expect(warned({ ...rejecting, ack: 'auto' })).toEqual([])
    expect(warned({ ...rejecting, retry: noRetry() })).toEqual([])
  })

  test('says whose options they are, and what to do', () => {
    const [warning] = warned({ retry: exponential({ maxAttempts: null }) })

    expect(warning?.fields).toEqual({ handler: 'ship', queues: ['orders', 'refunds'] })
    expect(warning?.message).toContain('Give it `maxAttempts` or `maxTotalMs`')
  })
})
