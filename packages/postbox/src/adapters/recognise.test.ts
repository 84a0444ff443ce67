import { describe, expect, test } from 'vitest'
import { whyOutside } from './outside.ts'
import { recogniseDatabase, recogniseHandle } from './recognise.ts'

const method = (): Promise<never> => Promise.reject(new Error('was called'))

/** An object, of a class, with these methods and members. */
function instance(methods: readonly string[], members: object = {}): object {
  class Client {}
  for (const name of methods) Object.defineProperty(Client.prototype, name, { value: method })
  return Object.assign(new Client(), members)
}

/** A function with these methods: what postgres.js gives. */
function callable(methods: readonly string[]): object {
  return Object.assign(() => {}, Object.fromEntries(methods.map((name) => [name, method])))
}

const pgPool = instance(['query', 'connect', 'end'], { totalCount: 0 })
const pgClient = (status?: string | null, members: object = {}): object =>
  instance(
    ['query', 'connect', 'escapeIdentifier', 'end'],
    status === undefined ? members : { getTransactionStatus: () => status, ...members },
  )
const [busy, ready] = [{ readyForQuery: false }, { readyForQuery: true }]
const sqlRoot = callable(['unsafe', 'typed', 'json', 'begin', 'reserve', 'end'])
const sqlTransaction = callable(['unsafe', 'typed', 'json', 'savepoint'])
const sqlReserved = callable(['unsafe', 'typed', 'json', 'release'])
const pgliteMembers = ['query', 'exec', 'sql', 'listen']
const pglite = instance([...pgliteMembers, 'transaction'], { closed: false })
const pgliteTransaction = (closed: boolean): object => instance([...pgliteMembers, 'rollback'], { closed })
const drizzleMembers = ['execute', 'transaction', 'select', 'selectDistinctOn']
const drizzleDb = instance(drizzleMembers, { query: {}, session: { client: pgPool } })
const drizzleTransaction = (client: unknown): object =>
  instance([...drizzleMembers, 'rollback'], { query: {}, session: { client } })
const kyselyMembers = ['executeQuery', 'withoutPlugins', 'transaction', 'startTransaction']
const kyselyDb = instance(kyselyMembers, { isTransaction: false })
const kyselyTransaction = (members: object = {}): object =>
  instance(kyselyMembers, { isTransaction: true, ...members })
const ownHandle = (inTransaction: unknown): object => ({ query: method, inTransaction })

/** Touching any member throws, as some proxies of ORMs and mocks do. */
const untouchable = new Proxy(
  {},
  {
    get: () => {
      throw new Error('do not touch')
    },
  },
)

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

describe('recogniseHandle', () => {
  test.each([
    ['a pg client in a transaction', pgClient('T'), { client: 'pg', inside: true }],
    ['an idle pg client', pgClient('I'), { client: 'pg', inside: false }],
    ['a pg client in a failed transaction', pgClient('E'), { client: 'pg', inside: false }],
    ['a pg client that is not connected', pgClient(null), { client: 'pg', inside: false }],
    ['an old pg client that cannot tell', pgClient(), { client: 'pg', inside: 'unknown' }],
    ['a pg client that waits for an answer', pgClient('T', busy), { client: 'pg', inside: 'unknown' }],
    ['a pg client whose BEGIN is under way', pgClient('I', busy), { client: 'pg', inside: 'unknown' }],
    ['a pg client whose ROLLBACK is under way', pgClient('E', busy), { client: 'pg', inside: 'unknown' }],
    ['a pg client that waits for nothing', pgClient('T', ready), { client: 'pg', inside: true }],
    ['an idle pg client that waits for nothing', pgClient('I', ready), { client: 'pg', inside: false }],
    ['a pg pool', pgPool, { client: 'pg', inside: false }],
    ['the handle of sql.begin', sqlTransaction, { client: 'postgres.js', inside: true }],
    ['the handle of sql.reserve', sqlReserved, { client: 'postgres.js', inside: 'unknown' }],
    ['postgres.js itself', sqlRoot, { client: 'postgres.js', inside: false }],
    ['the handle of db.transaction', pgliteTransaction(false), { client: 'PGlite', inside: true }],
    ['the handle of an ended db.transaction', pgliteTransaction(true), { client: 'PGlite', inside: false }],
    ['PGlite itself', pglite, { client: 'PGlite', inside: false }],
    ['a Drizzle transaction', drizzleTransaction(pgClient('T')), { client: 'Drizzle', inside: true }],
    ['one on an old pg', drizzleTransaction(pgClient()), { client: 'Drizzle', inside: 'unknown' }],
    ['one that has ended on pg', drizzleTransaction(pgClient('I')), { client: 'Drizzle', inside: false }],
    ['one on postgres.js', drizzleTransaction(sqlTransaction), { client: 'Drizzle', inside: true }],
    ['one on PGlite', drizzleTransaction(pgliteTransaction(false)), { client: 'Drizzle', inside: true }],
    [
      'one that has ended there',
      drizzleTransaction(pgliteTransaction(true)),
      { client: 'Drizzle', inside: false },
    ],
    ['one on a driver we do not know', drizzleTransaction({}), { client: 'Drizzle', inside: true }],
    [
      'one that hides its driver',
      instance([...drizzleMembers, 'rollback']),
      { client: 'Drizzle', inside: true },
    ],
    ['a Drizzle database', drizzleDb, { client: 'Drizzle', inside: false }],
    [
      'a Drizzle database on a client in a transaction',
      instance(drizzleMembers, { session: { client: pgClient('T') } }),
      { client: 'Drizzle', inside: false },
    ],
    ['a Kysely transaction', kyselyTransaction(), { client: 'Kysely', inside: true }],
    [
      'a controlled one',
      kyselyTransaction({ isCommitted: false, isRolledBack: false }),
      { client: 'Kysely', inside: true },
    ],
    [
      'a committed one',
      kyselyTransaction({ isCommitted: true, isRolledBack: false }),
      { client: 'Kysely', inside: false },
    ],
    [
      'one rolled back',
      kyselyTransaction({ isCommitted: false, isRolledBack: true }),
      { client: 'Kysely', inside: false },
    ],
    ['Kysely itself', kyselyDb, { client: 'Kysely', inside: false }],
    ['an own handle inside', ownHandle(true), { client: 'own', inside: true }],
    ['an own handle that answers inside', ownHandle(() => true), { client: 'own', inside: true }],
    ['an own handle outside', ownHandle(false), { client: 'own', inside: false }],
  ])('%s is known, and whether it is inside a transaction', (_title, candidate, expected) => {
    const handle = recogniseHandle(candidate)

    expect({ client: handle.client, inside: handle.transactionState().inside }).toEqual(expected)
  })

  test.each([
    [pgPool, /this is a pool/],
    [pgClient('E'), /already failed: ROLLBACK first$/],
    [pgClient('I'), /no transaction is open/],
    [sqlRoot, /sql\.begin/],
    [pglite, /db\.transaction/],
    [pgliteTransaction(true), /has ended/],
    [drizzleDb, /the Drizzle database: pass the tx that db\.transaction/],
    [kyselyDb, /the Kysely instance: pass the trx that db\.transaction\(\)\.execute/],
    [kyselyTransaction({ isCommitted: true }), /has ended/],
    [ownHandle(undefined), /says undefined/],
    [ownHandle('yes'), /says yes/],
    [ownHandle(1), /says 1/],
    [ownHandle(async () => true), /says \[object Promise\]/],
  ])('outside a transaction it says why (case %#)', (candidate, because) => {
    const state = recogniseHandle(candidate).transactionState()

    expect(state.inside === false && whyOutside(state.because)).toMatch(because)
  })

  test('the state is asked for each time: a transaction can end between two publishes', () => {
    const members = { query: method, inTransaction: true }
    const handle = recogniseHandle(members)
    members.inTransaction = false

    expect(handle.transactionState().inside).toBe(false)
  })

  test('only PGlite is one session for everybody, under Drizzle too', () => {
    const single = [pgliteTransaction(false), drizzleTransaction(pgliteTransaction(false))]
    const others = [pgClient('T'), sqlTransaction, drizzleTransaction(pgClient('T')), kyselyTransaction()]
    const sessions = (handles: object[]): Set<boolean> =>
      new Set(handles.map((handle) => recogniseHandle(handle).singleSession))

    expect(sessions(single)).toEqual(new Set([true]))
    expect(sessions([...others, ownHandle(true)])).toEqual(new Set([false]))
  })

  // U-PUB-02
  test.each([
    ['nothing', undefined],
    ['null', null],
    ['a text', 'begin'],
    ['a number', 7],
    ['an empty object', {}],
    ['an array', []],
    ['a function', () => {}],
    ['a Promise of a client', Promise.resolve(pgClient('T'))],
    ['an object with query only', { query: method }],
    ['query that is no function', { query: true, inTransaction: true }],
    [
      'a TypeORM query runner',
      instance(['query', 'startTransaction', 'release'], { isTransactionActive: true }),
    ],
    ['a Sequelize transaction', instance(['commit', 'rollback', 'afterCommit'])],
    ['a Drizzle transaction of MySQL', instance(['execute', 'transaction', 'select', 'rollback'])],
  ])('%s is refused', (_title, candidate) => {
    expect(() => recogniseHandle(candidate)).toThrow(
      expect.objectContaining({ code: 'OUTBOX_UNKNOWN_HANDLE' }),
    )
  })

  test.each([
    ['an object that throws when it is touched', untouchable],
    ['a revoked proxy', revoked()],
  ])('%s is refused, not crashed on', (_title, candidate) => {
    expect(() => recogniseHandle(candidate)).toThrow(
      expect.objectContaining({ code: 'OUTBOX_UNKNOWN_HANDLE' }),
    )
  })
})

describe('what is said of what is no handle', () => {
  class Later extends Promise<unknown> {}

  test.each([
    ['a Promise of a client', Promise.resolve(pgClient('T'))],
    ['a call of an async function', (async () => pgClient('T'))()],
  ])('%s: that an await is missing', (_title, candidate) => {
    expect(() => recogniseHandle(candidate)).toThrow(
      /^expected a transaction as the first argument, got `Promise` \(object\): an await is missing\. /,
    )
  })

  test.each([
    ['the word', 'Promise', /got `"Promise"` \(string\)\. /],
    ['nothing', undefined, /got `undefined`\. /],
    ['null', null, /got `null`\. /],
    ['a client of another kind', new Map(), /got `Map` \(object\)\. /],
    ['a promise of another kind', new Later(() => {}), /got `Later` \(object\)\. /],
    ['a revoked proxy', revoked(), /got `unprintable` \(object\)\. /],
  ])('%s: what it is, and nothing of an await', (_title, candidate, said) => {
    expect(() => recogniseHandle(candidate)).toThrow(said)
    expect(() => recogniseHandle(candidate)).not.toThrow(/await/)
  })
})

describe('recogniseDatabase', () => {
  test.each([
    ['a pg pool', pgPool, false],
    ['postgres.js', sqlRoot, false],
    ['PGlite', pglite, true],
    ['an own database', { query: method, transaction: method }, false],
  ])('%s is a database', (_title, candidate, singleSession) => {
    expect(recogniseDatabase(candidate)).toMatchObject({ singleSession })
  })

  test.each([
    ['a pg pool', pgPool, ['connect', 'listen']],
    ['postgres.js', sqlRoot, ['listen']],
    ['PGlite', pglite, ['listen']],
    ['an own database', { query: method, transaction: method }, []],
  ])('%s can do what its client can', (_title, candidate, expected) => {
    const database = recogniseDatabase(candidate)

    expect((['connect', 'listen'] as const).filter((ability) => database?.[ability])).toEqual(expected)
  })

  test.each([
    [Object.assign(instance(['query', 'connect']), { totalCount: 0, options: { max: 7 } }), 7],
    [Object.assign(instance(['query', 'connect']), { totalCount: 0, options: { max: '7' } }), null],
    [pgPool, null],
    [sqlRoot, null],
    [pglite, null],
    [{ query: method, transaction: method }, null],
  ])('the most connections are known where a pool tells them (case %#)', (candidate, capacity) => {
    expect(recogniseDatabase(candidate)).toMatchObject({ capacity })
  })

  test.each([
    ['a TypeORM DataSource', instance(['query', 'transaction', 'createQueryRunner'])],
    ['a Sequelize', instance(['query', 'transaction', 'authenticate'])],
    ['a Drizzle database', drizzleDb],
    ['Kysely', kyselyDb],
    ['a subclass of nothing known', Object.create({ query: method, transaction: method })],
    ['a function with both methods', callable(['query', 'transaction'])],
    ['a pg client, which is one connection', pgClient('I')],
    ['the handle of sql.begin', sqlTransaction],
    ['the handle of db.transaction', pgliteTransaction(false)],
    ['an own handle', ownHandle(true)],
    ['a connection string', 'postgres://localhost/app'],
    ['the options of a pool', { connectionString: 'postgres://localhost/app' }],
    ['null', null],
  ])('%s is none', (_title, candidate) => {
    expect(recogniseDatabase(candidate)).toBeNull()
  })

  test('an object that throws when it is touched is none', () => {
    expect(recogniseDatabase(untouchable)).toBeNull()
  })
})
