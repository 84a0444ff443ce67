import { describe, expect, test } from 'vitest'
import { deliveredCursorText, resolveDeliveredPage } from './delivered-options.ts'

const micros = '1767225603123456'

describe('resolveDeliveredPage', () => {
  test('asks for the newest fifty of everything by default', () => {
    const query = { queue: null, key: null, sinceMs: null, untilMs: null }

    expect(resolveDeliveredPage()).toEqual({ query, limit: 50, after: null })
    expect(resolveDeliveredPage({ queue: undefined, after: undefined })).toMatchObject({ limit: 50 })
  })

  test('takes what is given', () => {
    const given = { queue: 'orders', key: 'k', since: new Date(1), until: new Date(2), limit: 1_000 }

    expect(resolveDeliveredPage({ ...given, after: `${micros}-7` })).toEqual({
      query: { queue: 'orders', key: 'k', sinceMs: 1, untilMs: 2 },
      limit: 1_000,
      after: { deliveredMicros: micros, seq: '7' },
    })
  })

  test.each([
    [null],
    [{ limit: 0 }],
    [{ limit: 1_001 }],
    [{ key: '' }],
    [{ since: '2026-01-01' }],
    [{ until: new Date(Number.NaN) }],
    [{ since: new Date(2), until: new Date(1) }],
    [{ reason: 'rejected' }],
    [{ after: 7 }],
  ])('refuses %j', (options) => {
    expect(() => resolveDeliveredPage(options as never)).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_OPTION' }),
    )
  })

  test('refuses what is no name of a queue by its own code', () => {
    expect(() => resolveDeliveredPage({ queue: '' })).toThrow(
      expect.objectContaining({ code: 'OUTBOX_INVALID_QUEUE' }),
    )
  })
})

describe('a cursor', () => {
  test.each([
    [{ deliveredMicros: micros, seq: '1' }],
    [{ deliveredMicros: '-5', seq: '9223372036854775807' }],
  ])('comes back from its text as it was, and needs no escaping in a URL: %j', (cursor) => {
    const text = deliveredCursorText(cursor)

    expect(resolveDeliveredPage({ after: text }).after).toEqual(cursor)
    expect(encodeURIComponent(text)).toBe(text)
  })

  test.each([
    [''],
    ['garbage'],
    [`${micros}-`],
    [`${micros}-d-1`],
    [`${micros}-1 `],
    [`${micros}0-1`],
    [`${micros}-9223372036854775808`],
  ])('that is none is refused with its value: %j', (after) => {
    const refused = { code: 'OUTBOX_INVALID_OPTION', message: expect.stringContaining('`after`') }

    expect(() => resolveDeliveredPage({ after })).toThrow(expect.objectContaining(refused))
  })
})
