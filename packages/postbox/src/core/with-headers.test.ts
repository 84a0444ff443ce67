import { expect, test } from 'vitest'
import type { Draft } from './message.ts'
import { withHeaders } from './with-headers.ts'

const draft: Draft = {
  id: '0190163d-8694-739b-9aea-966c26f8ad91',
  queue: 'orders',
  key: 'k',
  timerId: null,
  conflict: 'none',
  body: new Uint8Array(3),
  headers: { tenant: '1' },
  schedule: { kind: 'now' },
  generation: null,
}

test('every message gets what it does not have, whatever its case, and changes in nothing else', () => {
  const added = new Map(Object.entries({ TENANT: '2', trace: 't' }))

  expect(withHeaders([draft, { ...draft, headers: null }], added, 1_000)).toEqual([
    { ...draft, headers: { tenant: '1', trace: 't' } },
    { ...draft, headers: { TENANT: '2', trace: 't' } },
  ])
})

test('with nothing to add they are the same messages', () => {
  const drafts = [draft]

  expect(withHeaders(drafts, new Map(), 1_000)).toBe(drafts)
})

test('all headers of a message must fit', () => {
  expect(() => withHeaders([draft], new Map([['trace', 't']]), 20)).toThrow(
    expect.objectContaining({ code: 'OUTBOX_INVALID_HEADERS' }),
  )
})

// Postgres would say it inside the caller's transaction.
test('a batch that they make too large for one statement is refused', () => {
  const almost = [{ ...draft, body: { byteLength: 187_499_250 } as Uint8Array }]

  expect(withHeaders(almost, new Map([['a', 'b']]), 2_000)).toHaveLength(1)
  expect(() => withHeaders(almost, new Map([['a', 'b'.repeat(1_000)]]), 2_000)).toThrow(
    expect.objectContaining({ code: 'OUTBOX_BODY_TOO_LARGE' }),
  )
})
