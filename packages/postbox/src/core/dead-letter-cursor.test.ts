import { describe, expect, test } from 'vitest'
import { cursorText, type DeadLetterCursor, readCursor, seqUpTo } from './dead-letter-cursor.ts'

const failedMicros = '1767225603123456'

test.each<DeadLetterCursor>([
  { failedMicros, place: 'moved', seq: '1' },
  { failedMicros, place: 'quarantined', seq: '9223372036854775807' },
  { failedMicros: '-5', place: 'moved', seq: '0' },
])('a cursor comes back from its text as it was, and needs no escaping in a URL: %j', (cursor) => {
  const text = cursorText(cursor)

  expect(readCursor(text)).toEqual(cursor)
  expect(encodeURIComponent(text)).toBe(text)
})

test.each([
  [''],
  ['garbage'],
  [`${failedMicros}-d-`],
  [`${failedMicros}-x-1`],
  [`${failedMicros}-d-1 `],
  [` ${failedMicros}-d-1`],
  [`${failedMicros}-d-1\n`],
  [`${failedMicros}0-d-1`],
  [`${failedMicros}-d--1`],
  [`${failedMicros}-d-1.5`],
  [`${failedMicros}-d-9223372036854775808`],
  [`'; drop table outbox; --`],
])('what is no cursor is refused with its value: %j', (given) => {
  const refused = { code: 'OUTBOX_INVALID_OPTION', message: expect.stringContaining('`after`') }
  expect(() => readCursor(given)).toThrow(expect.objectContaining(refused))
})

describe('within the microsecond of the cursor', () => {
  const at = (place: DeadLetterCursor['place']) => ({ failedMicros, place, seq: '7' })

  test('the rest of the place itself begins below it', () => {
    expect(seqUpTo(at('moved'), 'moved')).toBe('6')
    expect(seqUpTo(at('quarantined'), 'quarantined')).toBe('6')
  })

  test('all quarantined ones come after a moved one, and no moved one after a quarantined one', () => {
    expect(seqUpTo(at('moved'), 'quarantined')).toBe('9223372036854775807')
    expect(seqUpTo(at('quarantined'), 'moved')).toBe('0')
  })
})
