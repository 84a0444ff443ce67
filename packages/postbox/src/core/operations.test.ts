import { describe, expect, test } from 'vitest'
import { operationCursorText, readOperationCursor } from './operation-cursor.ts'
import {
  filterFrom,
  givenSettingsFrom,
  mostRowsOfBatch,
  narrower,
  placeFrom,
  queryFrom,
  settingsFrom,
  storedFilter,
  storedSettings,
  wider,
} from './operations.ts'

const any = { queue: null, reason: null, key: null, search: null, sinceMs: null, untilMs: null }
const sinceMs = Date.UTC(2026, 0, 1, 0, 0, 0, 123)
const full = { queue: 'q', reason: 'rejected', key: 'k', search: 's', sinceMs, untilMs: sinceMs + 1 }

describe('a filter that is stored', () => {
  test.each([[any], [full], [{ ...any, queue: 'q' }]])('comes back as it was: %j', (query) => {
    expect(queryFrom(JSON.stringify(storedFilter(query)))).toEqual(query)
  })

  test('says only what it was asked, with times that people can read', () => {
    expect(storedFilter(any)).toEqual({})
    expect(storedFilter(full)).toEqual({
      ...{ queue: 'q', reason: 'rejected', key: 'k', search: 's' },
      ...{ since: '2026-01-01T00:00:00.123Z', until: '2026-01-01T00:00:00.124Z' },
    })
  })

  test('is shown with dates, and with the id of a single one', () => {
    const { sinceMs: _, untilMs: __, ...texts } = full

    expect(filterFrom(JSON.stringify(storedFilter(full)))).toEqual({
      ...texts,
      since: new Date(sinceMs),
      until: new Date(sinceMs + 1),
    })
    expect(filterFrom('{"id":"x"}')).toEqual({ id: 'x' })
    expect(filterFrom('{}')).toEqual({})
  })

  test.each(['null', '[]', '7', '{"queue":7,"since":"never","until":5}'])(
    'of another shape means nothing of it: %s',
    (text) => {
      expect(queryFrom(text)).toEqual(any)
    },
  )
})

describe('settings that are stored', () => {
  const none = { perSecond: null, limit: null, generation: null, delayMs: 0 }
  const all = { perSecond: 0.5, limit: 3, generation: 0, delayMs: 9 }

  test.each([[none], [all]])('come back as they were: %j', (settings) => {
    expect(settingsFrom(JSON.stringify(storedSettings(settings)))).toEqual(settings)
  })

  test('say only what was asked', () => {
    expect(storedSettings(none)).toEqual({})
    expect(givenSettingsFrom('{}')).toEqual({})
    expect(givenSettingsFrom(JSON.stringify(storedSettings(all)))).toEqual(all)
  })
})

test('a place is read as it was written, and there may be none', () => {
  const place = { failedMicros: '5', place: 'moved', seq: '7' }

  expect(placeFrom(null)).toBeNull()
  expect(placeFrom(JSON.stringify(place))).toEqual(place)
})

test('a batch that met somebody shrinks to a single row in three steps, and grows again as fast', () => {
  const steps = [mostRowsOfBatch]
  for (let n = 0; n < 4; n++) steps.push(narrower(steps.at(-1)!))

  expect(steps).toEqual([500, 62, 7, 1, 1])
  expect([wider(1), wider(8), wider(64), wider(500)]).toEqual([8, 64, 500, 500])
})

test('a cursor of operations is read as it was written', () => {
  const cursor = { startedMicros: '-5', id: '01890000-0000-7000-8000-00000000000a' }

  expect(readOperationCursor(operationCursorText(cursor))).toEqual(cursor)
})
