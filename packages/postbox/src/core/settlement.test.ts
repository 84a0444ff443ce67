import { describe, expect, test } from 'vitest'
import type { Lease } from './lease.ts'
import { settle } from './settlement.ts'

const lease: Lease = {
  token: '0190163d-8694-739b-9aea-966c26f8ad91',
  id: '0190163d-8694-739b-9aea-966c26f8ad92',
  seq: '7',
  queue: 'orders',
  key: null,
  body: new Uint8Array(0),
  headers: {},
  attempt: 3,
  deliveries: 3,
  createdAt: new Date(0),
  generation: null,
}

describe('settle', () => {
  test('an acknowledged message is deleted', () => {
    expect(settle(lease, { kind: 'ack' }, 0.5)).toEqual({ write: 'delete', lease })
  })

  test('a failed message comes back after the backoff of its attempt, with its error', () => {
    const thrown = new TypeError('bad')

    expect(settle(lease, { kind: 'fail', error: thrown }, 0.5)).toEqual({
      write: 'reschedule',
      lease,
      delayMs: 3_000,
      error: 'TypeError: bad',
      thrown,
    })
  })

  test.each([new TypeError('bad'), 'a\u0000b', undefined, null])(
    'what was thrown goes to the log as it was (case %#)',
    (error) => {
      const settlement = settle(lease, { kind: 'fail', error }, 0)

      expect('thrown' in settlement && Object.is(settlement.thrown, error)).toBe(true)
    },
  )

  test('an error that would fail the write itself is cleaned', () => {
    expect(settle(lease, { kind: 'fail', error: 'a\u0000b' }, 0)).toMatchObject({ error: 'a\ufffdb' })
  })

  test('an outcome of another kind is an error of ours', () => {
    expect(() => settle(lease, { kind: 'shrug' } as never, 0)).toThrow('unreachable: {"kind":"shrug"}')
  })
})
