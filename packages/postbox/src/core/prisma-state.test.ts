import { describe, expect, test } from 'vitest'
import { prismaStateOf } from './prisma-state.ts'

function prisma(code: string | undefined, rest: object): unknown {
  return Object.assign(new Error('Invalid invocation'), { code, clientVersion: '6.1.0', ...rest })
}

describe('prismaStateOf', () => {
  test.each([
    ['P2000', '22001'],
    ['P2002', '23505'],
    ['P2003', '23503'],
    ['P2004', '23514'],
    ['P2007', '22P02'],
    ['P2011', '23502'],
    ['P2020', '22003'],
  ])('%s, which comes without a state, stands for %s', (code, state) => {
    expect(prismaStateOf(prisma(code, { meta: { modelName: 'Order' } }))).toBe(state)
    expect(prismaStateOf(new Error('order failed', { cause: prisma(code, {}) }))).toBe(state)
  })

  test.each([
    ['P2010', 'Raw query failed. Code: `23514`. Message: `x`'],
    [undefined, 'ConnectorError(QueryError(PostgresError { code: "23514", message: "x" }))'],
    [undefined, 'Some(DbError { severity: "ERROR", code: SqlState(E23514), message: "x" })'],
  ])('reads the state that the engine prints (case %#)', (code, message) => {
    expect(prismaStateOf(prisma(code, { message }))).toBe('23514')
  })

  test('what was printed is believed before what the code stands for', () => {
    expect(prismaStateOf(prisma('P2004', { message: 'PostgresError { code: "23505" }' }))).toBe('23505')
  })

  test.each([
    ['a record that was not found', prisma('P2025', { meta: { cause: 'No record was found' } })],
    ['an unreachable server', prisma('P1001', {})],
    ['a conflict', prisma('P2034', {})],
    ['a code that every object has', prisma('constructor', {})],
    ['a query that is quoted', prisma(undefined, { message: 'Invalid `create` where: { code: "22001" }' })],
    ['a message that is none', prisma(undefined, { message: 7 })],
    ['an error of somebody else', new Error('Raw query failed. Code: `23505`. Message: `x`')],
    ['another’s code', Object.assign(new Error('raised'), { code: 'P2002' })],
    ['nothing', undefined],
  ])('finds none in %s', (_title, error) => {
    expect(prismaStateOf(error)).toBeNull()
  })
})
