import { describe, expect, test } from 'vitest'
import {
  assertMessageId,
  type DeadLetterListOptions,
  type ReplayOptions,
  resolveDeadLetterFilter,
  resolveDeadLetterPage,
  resolveReplay,
} from './dead-letter-options.ts'
import type { ErrorCode } from './errors.ts'

const nothing = { queue: null, reason: null, sinceMs: null, untilMs: null, key: null, search: null }
const noon = new Date('2026-01-01T12:00:00Z')

test('nothing given means all dead letters, fifty of them, from the newest on', () => {
  expect(resolveDeadLetterFilter()).toEqual(nothing)
  expect(resolveDeadLetterPage()).toEqual({ query: nothing, limit: 50, after: null })
  expect(resolveDeadLetterPage({})).toEqual(resolveDeadLetterPage())
})

test('what is undefined counts as not given', () => {
  const given = { queue: undefined, since: undefined, limit: undefined, after: undefined }
  expect(resolveDeadLetterPage(given)).toEqual(resolveDeadLetterPage())
  expect(resolveReplay({ by: 'me', generation: undefined, delayMs: undefined })).toEqual(
    resolveReplay({ by: 'me' }),
  )
})

test('a filter is taken as it is given', () => {
  const text = { queue: 'a "queue"', reason: 'rejected' as const, key: "k'", search: '100%_\\' }
  const filter = { ...text, since: noon, until: new Date(noon.getTime() + 1) }

  expect(resolveDeadLetterPage({ ...filter, limit: 1_000, after: '17-q-3' })).toEqual({
    query: { ...text, sinceMs: noon.getTime(), untilMs: noon.getTime() + 1 },
    limit: 1_000,
    after: { failedMicros: '17', place: 'quarantined', seq: '3' },
  })
  expect(resolveDeadLetterFilter(filter)).toEqual(resolveDeadLetterPage(filter).query)
})

describe('refused, by the code and with the value', () => {
  const invalid = 'OUTBOX_INVALID_OPTION'
  const lists: readonly [unknown, ErrorCode, string][] = [
    [null, invalid, 'expected the options of list to be an object, got `null`'],
    ['orders', invalid, 'to be an object'],
    [{ queue: '' }, 'OUTBOX_INVALID_QUEUE', '`queue` to be a non-empty string'],
    [{ queue: null }, 'OUTBOX_INVALID_QUEUE', '`queue` to be a non-empty string'],
    [{ queue: 'x'.repeat(256) }, 'OUTBOX_INVALID_QUEUE', 'at most 255 bytes'],
    [{ reason: '' }, invalid, '`reason`'],
    [
      { reason: 'expired' },
      invalid,
      "`reason` to be one of 'max_deliveries', 'retry_terminal', 'rejected', 'terminal_error', 'invalid_body', got `\"expired\"`",
    ],
    [{ reason: 'rejectd' }, invalid, '(did you mean \'rejected\'?), got `"rejectd"`'],
    [{ reason: Object.create(null) }, invalid, '`reason` to be one of'],
    [{ reason: null }, invalid, '`reason` to be one of'],
    [{ key: 1 }, invalid, '`key`'],
    [{ search: '' }, invalid, '`search` to be a non-empty string'],
    [{ search: '\ud800' }, invalid, 'surrogate'],
    [{ search: 'x'.repeat(1025) }, invalid, 'at most 1024 bytes'],
    [{ since: '2026-01-01' }, invalid, '`since` to be a valid Date'],
    [{ since: Date.now() }, invalid, '`since` to be a valid Date'],
    [{ until: new Date(Number.NaN) }, invalid, 'got `Invalid Date`'],
    [{ until: new Date('+010000-01-01T00:00:00Z') }, invalid, 'before the year 10000'],
    [{ since: new Date('-000001-01-01T00:00:00Z') }, invalid, '`since`'],
    [{ since: noon, until: new Date(0) }, invalid, '`since` not to be after `until`'],
    [{ limit: 0 }, invalid, '`limit` to be a whole number from 1 to 1000'],
    [{ limit: 1_001 }, invalid, '`limit`'],
    [{ limit: 1.5 }, invalid, '`limit`'],
    [{ limit: '5' }, invalid, '`limit`'],
    [{ after: null }, invalid, '`after` to be a string'],
    [{ after: 'garbage' }, invalid, '`after` to be the `next` of a page of dead letters, got `"garbage"`'],
    [{ quque: 'orders' }, invalid, 'did you mean `queue`?'],
    [{ limit: 0, reason: '' }, invalid, '`limit`'],
    [{ limit: 0, reason: '' }, invalid, '`reason`'],
  ]
  test.each(lists)('list(%j)', (options, code, part) => {
    const list = () => resolveDeadLetterPage(options as DeadLetterListOptions)
    expect(list).toThrow(expect.objectContaining({ code, message: expect.stringContaining(part) }))
  })

  test.each([['limit'], ['after']])('count with %s, which is of no use there', (option) => {
    const count = () => resolveDeadLetterFilter({ [option]: 5 })
    expect(count).toThrow(
      expect.objectContaining({ code: invalid, message: expect.stringContaining(option) }),
    )
  })

  const replays: readonly [unknown, ErrorCode, string][] = [
    [undefined, invalid, 'expected the options of replay to be an object, got `undefined`: give { by }. '],
    [null, invalid, 'expected the options of replay to be an object, got `null`: give { by }. '],
    ['me', invalid, 'expected the options of replay to be an object, got `"me"` (string): give { by }. '],
    [{}, invalid, '`by` to be a non-empty string, got `undefined`'],
    [{ by: '' }, invalid, '`by` to be a non-empty string'],
    [{ by: 'x'.repeat(256) }, invalid, '`by` to be at most 255 bytes'],
    [{ by: 'a\0b' }, invalid, 'NUL'],
    [{ by: 'me', generation: -1 }, invalid, '`generation`'],
    [{ by: 'me', generation: 1.5 }, invalid, '`generation`'],
    [{ by: 'me', generation: null }, invalid, '`generation`'],
    [
      { by: 'me', delayMs: -1 },
      invalid,
      '`delayMs` to be a number of milliseconds, from 0 to a hundred years, got `-1`',
    ],
    [{ by: 'me', delayMs: 36_525 * 86_400_000 + 1 }, invalid, '`delayMs`'],
    [{ by: 'me', delayMs: Number.NaN }, invalid, '`delayMs`'],
    [{ by: 'me', delayMs: '5' }, invalid, '`delayMs`'],
    [{ by: 'me', delayMs: null }, invalid, '`delayMs`'],
    [{ by: '', delayMs: -1 }, invalid, '`delayMs`'],
    [{ by: '', delayMs: -1 }, invalid, '`by`'],
    [{ by: 'me', delay: 5 }, invalid, 'did you mean `delayMs`?'],
  ]
  test.each(replays)('replay(id, %j)', (options, code, part) => {
    const replay = () => resolveReplay(options as ReplayOptions)
    expect(replay).toThrow(expect.objectContaining({ code, message: expect.stringContaining(part) }))
  })

  test.each([[''], ['1'], [undefined], [null], [7], ["01890000-0000-7000-8000-00000000000a'"]])(
    'id %j',
    (id) => {
      const message = expect.stringContaining('`id` to be the UUID of a message')
      expect(() => assertMessageId(id)).toThrow(expect.objectContaining({ code: invalid, message }))
    },
  )
})

test.each(['max_deliveries', 'retry_terminal', 'rejected', 'terminal_error', 'invalid_body'] as const)(
  'what died of %s can be asked for',
  (reason) => {
    expect(resolveDeadLetterFilter({ reason })).toEqual({ ...nothing, reason })
  },
)

test('a replay is by somebody, at once and of the generation that it was, unless told otherwise', () => {
  expect(resolveReplay({ by: 'me' })).toEqual({ by: 'me', generation: null, delayMs: 0 })
  expect(resolveReplay({ by: 'me', generation: 0, delayMs: 1.5 })).toEqual({
    by: 'me',
    generation: 0,
    delayMs: 1.5,
  })
  expect(resolveReplay({ by: 'me', delayMs: 36_525 * 86_400_000 })).toMatchObject({
    delayMs: 3_155_760_000_000,
  })
})
