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

function prisma(code: string | undefined, rest: object): unknown {
  return Object.assign(new Error('Invalid invocation'), { code, clientVersion: '6.1.0', ...rest })
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
    [{ errno: -32, code: 'EPIPE' }],
    [{ code: 'E2BIG' }],
    [{ fields: { code: '22001' } }],
    [{ meta: { code: '22001' } }],
    [{ errors: [{ code: '22001' }] }],
    [new AggregateError([{ code: '23505' }, new Error('connection lost')])],
    [{ clientVersion: '6.1.0', code: 'P2025', meta: { cause: 'No record was found' } }],
    [{ clientVersion: '6.1.0', code: 'P1001' }],
  ])('answers null where there is none (case %#)', (error) => {
    expect(sqlStateOf(error)).toBeNull()
  })

  const pgError = Object.assign(new Error('duplicate key'), { code: '23505' })

  // As each of them gives it, shortened.
  test.each([
    ['pg, postgres.js, PGlite, Knex, Kysely, MikroORM', pgError],
    ['Drizzle', new Error('Failed query', { cause: pgError })],
    ['TypeORM', Object.assign(new Error('duplicate key'), { driverError: pgError })],
    ['Sequelize', Object.assign(new Error('Validation error'), { parent: pgError, original: pgError })],
    ['an item of Sequelize’s validation', { message: 'id must be unique', original: pgError }],
    ['Slonik before causes', Object.assign(new Error('unique violation'), { originalError: pgError })],
    ['Objection', Object.assign(new Error('duplicate key'), { nativeError: pgError })],
    ['Bun', Object.assign(new Error('duplicate key'), { code: 'ERR_POSTGRES_SERVER_ERROR', errno: '23505' })],
    ['a raw query of Prisma', prisma('P2010', { meta: { code: '23505', message: 'duplicate key' } })],
    [
      'Prisma with an adapter',
      prisma('P2002', {
        meta: { driverAdapterError: { cause: { originalCode: '23505', kind: 'UniqueConstraintViolation' } } },
      }),
    ],
    ['an error of a Prisma adapter', { cause: { originalCode: '23505', kind: 'postgres' } }],
    ['Prisma without its version', { code: 'P2010', meta: { code: '23505' } }],
    ['an application around an ORM', new Error('order failed', { cause: { parent: { cause: pgError } } })],
  ])('finds the state that Postgres gave in the error of %s', (_client, error) => {
    expect(sqlStateOf(error)).toBe('23505')
  })

  test('a code of Prisma’s own is no state, and the one behind it is', () => {
    const meta = { driverAdapterError: { cause: { originalCode: '23001' } } }

    expect(sqlStateOf(prisma('P2003', { meta }))).toBe('23001')
  })

  test('a trigger may raise what looks like a code of Prisma', () => {
    expect(sqlStateOf(Object.assign(new Error('raised'), { code: 'P2002', severity: 'ERROR' }))).toBe('P2002')
  })

  test('what lies nearer to the surface is found first', () => {
    const near = { code: '40001' }
    const far = { cause: { code: '23505' } }

    expect(sqlStateOf({ cause: far, parent: near })).toBe('40001')
  })

  test('survives what throws when it is touched, and looks past it', () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const touchy = {
      get code(): string {
        throw new Error('do not touch')
      },
      cause: pgError,
    }

    expect(sqlStateOf(proxy)).toBeNull()
    expect(sqlStateOf(touchy)).toBe('23505')
  })

  test('an error that has a new cause whenever it is asked comes to an end', () => {
    const endless = (): unknown =>
      new Proxy({}, { get: (_target, name) => (name === 'code' || name === 'errno' ? 'none' : endless()) })

    expect(sqlStateOf(endless())).toBeNull()
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
