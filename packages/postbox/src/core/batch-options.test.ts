import { describe, expect, test } from 'vitest'
import { resolveBatchOptions } from './batch-options.ts'
import { resolveSubscribeOptions } from './subscribe-options.ts'

const base = resolveSubscribeOptions({ concurrency: 3 })

describe('resolveBatchOptions', () => {
  test('fills the documented defaults, and those of the outbox', () => {
    expect(resolveBatchOptions(undefined, base)).toEqual({ settings: base, size: 100, maxWaitMs: 50 })
  })

  test('takes the options of a subscription, too', () => {
    expect(resolveBatchOptions({ concurrency: 1, size: 7, maxWaitMs: 0 }, base)).toEqual({
      settings: { ...base, concurrency: 1 },
      size: 7,
      maxWaitMs: 0,
    })
  })

  test.each([{ size: 1 }, { size: 10_000 }, { maxWaitMs: 60_000 }])(
    'accepts its limits (case %#)',
    (options) => {
      expect(resolveBatchOptions(options, base)).toMatchObject(options)
    },
  )

  test.each([
    { size: 0 },
    { size: 10_001 },
    { size: 1.5 },
    { maxWaitMs: -1 },
    { maxWaitMs: 60_001 },
    { sise: 5 },
    null,
  ])('refuses what lies outside them (case %#)', (options) => {
    expect(() => resolveBatchOptions(options as never, base)).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }),
    )
  })

  test('tells all problems at once', () => {
    const act = (): unknown => resolveBatchOptions({ size: 0, maxWaitMs: -1, concurrency: 0 }, base)

    expect(act).toThrow(/size.*maxWaitMs.*concurrency/)
  })
})
