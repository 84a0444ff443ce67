import { describe, expect, test } from 'vitest'
import { sqlState, sqlStateOf } from './sql-state.ts'

function wrapped(error: unknown, times: number): unknown {
  return times === 0 ? error : wrapped(new Error(`layer ${times}`, { cause: error }), times - 1)
}

function selfCaused(): Error {
  const error = new Error('ouroboros')
  error.cause = error
  return error
}

describe('sqlStateOf', () => {
  test.each([
    [{ code: '25P01' }, '25P01'],
    [Object.assign(new Error('relation missing'), { code: '42P01' }), '42P01'],
    [wrapped({ code: '40001' }, 3), '40001'],
    [{ code: 7, cause: { code: '23505' } }, '23505'],
  ])('finds the state through what was wrapped around it (case %#)', (error, state) => {
    expect(sqlStateOf(error)).toBe(state)
  })

  test.each([
    [null],
    [undefined],
    ['25P01'],
    [new Error('plain')],
    [{ code: 'ECONNREFUSED' }],
    [{ code: '25p01' }],
    [{ code: '25P0' }],
    [{ code: '25P01\n' }],
    [{ code: ['25P01'] }],
    [selfCaused()],
  ])('answers null where there is none (case %#)', (error) => {
    expect(sqlStateOf(error)).toBeNull()
  })

  test('looks at ten layers and not further', () => {
    expect(sqlStateOf(wrapped({ code: '40001' }, 9))).toBe('40001')
    expect(sqlStateOf(wrapped({ code: '40001' }, 10))).toBeNull()
  })

  test('a broken pipe of the operating system is no state of Postgres', () => {
    expect(sqlStateOf(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))).toBeNull()
  })

  test('the states we decide by have five characters', () => {
    expect(Object.values(sqlState).every((state) => /^[0-9A-Z]{5}$/.test(state))).toBe(true)
  })
})

/** An error as a client gives it, with the state that Postgres gave. */
