import { describe, expect, test } from 'vitest'
import * as policies from '../policies.ts'
import { resolveSubscribeOptions } from './subscribe-options.ts'

const never = (): null => null
const invalid = expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' })

describe('resolveSubscribeOptions', () => {
  test('fills the documented defaults', () => {
    expect(resolveSubscribeOptions(undefined)).toEqual({
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
    })
  })

  test('the subscription goes before the outbox, the outbox before the defaults', () => {
    const base = resolveSubscribeOptions({ concurrency: 3, leaseMs: 5_000 })

    expect(resolveSubscribeOptions({ concurrency: 7 }, base)).toMatchObject({
      concurrency: 7,
      leaseMs: 5_000,
    })
  })

  test.each([
    { name: 'b', base: 'a' },
    { concurrency: 2, base: 1 },
    { leaseMs: 2_000, base: 1_000 },
    { timeoutMs: 2, base: 1 },
    { retry: never, base: () => 1 },
    { maxDeliveries: null, base: 3 },
    { maxDeliveries: 3, base: null },
    { ack: 'auto' as const, base: 'manual' },
    { terminalErrors: [], base: [TypeError] },
    { classify: () => undefined, base: () => 'terminal' },
    { propagateHeaders: false, base: true },
    { failingHead: 'skip' as const, base: 'park' },
    { prefetch: 0, base: 1 },
    { flush: 'natural' as const, base: 'each' },
    { maxBatch: 1, base: 2 },
    { pollMs: { min: 2, max: 2 }, base: { min: 1, max: 1 } },
  ])('each option of the outbox is kept, and each of the subscription goes before it (case %#)', (given) => {
    const { base, ...own } = given
    const [option] = Object.keys(own)
    const inherited = resolveSubscribeOptions({ [option as string]: base })

    expect(resolveSubscribeOptions({}, inherited)).toMatchObject({ [option as string]: base })
    expect(resolveSubscribeOptions(own, inherited)).toMatchObject(own)
  })

  test('the result is frozen', () => {
    expect(Object.isFrozen(resolveSubscribeOptions({}))).toBe(true)
  })

  test.each([
    {
      concurrency: 1,
      leaseMs: 1_000,
      timeoutMs: 1,
      retry: never,
      maxDeliveries: 1,
      ack: 'reject-on-error' as const,
      terminalErrors: [TypeError],
      classify: (): 'transient' => 'transient',
      propagateHeaders: ['traceparent'],
      failingHead: 'park' as const,
      prefetch: 0,
      flush: 'each' as const,
      maxBatch: 1,
      pollMs: { min: 1, max: 1 },
      name: 'x',
    },
    {
      concurrency: 10_000,
      leaseMs: 86_400_000,
      timeoutMs: 86_400_000,
      retry: never,
      maxDeliveries: 1_000_000,
      ack: 'manual' as const,
      terminalErrors: [],
      classify: (): undefined => undefined,
      propagateHeaders: true,
      failingHead: 'skip' as const,
      prefetch: 10_000,
      flush: 'natural' as const,
      maxBatch: 10_000,
      pollMs: { min: 3_600_000, max: 3_600_000 },
      name: 'é'.repeat(127),
    },
  ])('accepts its limits (case %#)', (options) => {
    expect(resolveSubscribeOptions(options)).toEqual(options)
  })

  test.each([
    { concurrency: 0 },
    { concurrency: 10_001 },
    { concurrency: 1.5 },
    { concurrency: '8' },
    { leaseMs: 999 },
    { leaseMs: 86_400_001 },
    { timeoutMs: 0 },
    { timeoutMs: 86_400_001 },
    { timeoutMs: null },
    { retry: { maxAttempts: 3 } },
    { retry: null },
    { maxDeliveries: 0 },
    { maxDeliveries: 1_000_001 },
    { maxDeliveries: false },
    { ack: 'none' },
    { terminalErrors: TypeError },
    { terminalErrors: [new TypeError()] },
    { terminalErrors: ['TypeError'] },
    { terminalErrors: [() => TypeError] },
    { terminalErrors: new Array(1) },
    { classify: 'terminal' },
    { propagateHeaders: 'traceparent' },
    { propagateHeaders: [7] },
    { propagateHeaders: [''] },
    { propagateHeaders: null },
    { prefetch: -1 },
    { prefetch: 10_001 },
    { prefetch: 0.5 },
    { flush: 'batch' },
    { flush: true },
    { maxBatch: 0 },
    { maxBatch: 10_001 },
    { name: '' },
    { name: 'é'.repeat(128) },
    { pollMs: 20 },
    { pollMs: null },
    { pollMs: {} },
    { pollMs: { min: 0, max: 5 } },
    { pollMs: { min: 5, max: 3_600_001 } },
    { pollMs: { min: 6, max: 5 } },
    { concurency: 5 },
    null,
  ])('refuses what lies outside them (case %#)', (options) => {
    expect(() => resolveSubscribeOptions(options as never)).toThrow(invalid)
  })

  const ladder = 'expected `pollMs` to be { min, max }, each a whole number from 1 to 3600000, got'

  test.each<[object, string]>([
    [{ pollMs: 100 }, `${ladder} \`100\` (number). `],
    [{ pollMs: { min: 0, max: 5 } }, `${ladder} \`{"min":0,"max":5}\` (object). `],
    [{ pollMs: { min: 1 } }, `${ladder} \`{"min":1}\` (object). `],
    [{ pollMs: { min: 6, max: 5 } }, 'expected `pollMs` to have `min` not above `max`, got `{"min":6'],
    [
      { maxDeliveries: 0 },
      'expected `maxDeliveries` to be a whole number from 1 to 1000000, or null, got `0`',
    ],
    [{ retry: 5 }, 'expected `retry` to be a function, such as exponential({ … }), got `5` (number). '],
  ])('says of %j what to give instead', (options, sentence) => {
    expect(() => resolveSubscribeOptions(options)).toThrow(sentence)
  })

  test.each(Object.entries(policies))('%s itself, not called, is no retry policy', (name, make) => {
    const act = (): unknown => resolveSubscribeOptions({ retry: make as never })

    expect(act).toThrow(invalid)
    expect(act).toThrow(`expected \`retry\` to be a policy (call it: ${name}(`)
  })

  test.each([
    policies.exponential(),
    policies.linear({ initialMs: 1, stepMs: 1 }),
    policies.constant({ delayMs: 1 }),
    policies.noRetry(),
    policies.adr054(),
    function exponential() {
      return 1
    },
  ])('what they make is one, and so is a function of the same name (case %#)', (retry) => {
    expect(resolveSubscribeOptions({ retry })).toMatchObject({ retry })
  })
})
