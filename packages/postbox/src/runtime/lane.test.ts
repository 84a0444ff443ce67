import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Executor, Session } from '../adapters/executor.ts'
import type { Statement } from '../sql/statement.ts'
import { createLane, type LaneParts } from './lane.ts'

const timeoutMs = 10_000
const statement = (name: string): Statement => ({ name, text: name, values: [] })
const failed = (code: string): Error => Object.assign(new Error(code), { code })
const never = new Promise<never>(() => {})

/** Resolves when everything that could run without waiting has run. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A promise and the function that settles it. */
function gate(): { readonly opened: Promise<void>; open(): void } {
  let open = (): void => {}
  const opened = new Promise<void>((resolve) => {
    open = resolve
  })
  return { opened, open }
}

interface Behaviour {
  readonly isolation?: string
  readonly capacity?: number | null
  readonly canConnect?: boolean
  /** Awaited before the n-th connection comes, from 1. */
  readonly connecting?: (connection: number) => Promise<unknown> | undefined
  /** Awaited before a statement gives its rows, `on` a session ('1', '2', …), 'database' or 'transaction'. */
  readonly answer?: (name: string, on: string) => Promise<unknown> | undefined
}

/** A lane over a database that writes down what is asked of it. Each statement gives a row with its own name. */
function laneOf({ isolation = 'read committed', capacity = null, ...behaviour }: Behaviour = {}) {
  const events: string[] = []
  const losses: ((error: unknown) => void)[] = []
  const executor = (on: string): Executor => ({
    run: async <Row>({ name }: Statement<Row>) => {
      events.push(`${on}: ${name}`)
      await behaviour.answer?.(name, on)
      return [{ isolation, name }] as readonly unknown[] as readonly Row[]
    },
  })
  const connect = async (lost: (error: unknown) => void): Promise<Session> => {
    const number = losses.push(lost)
    events.push(`connect ${number}`)
    await behaviour.connecting?.(number)
    const leave = (how: string) => () => void events.push(`${how} ${number}`)
    return { ...executor(`${number}`), release: leave('release'), destroy: leave('destroy') }
  }
  const database: LaneParts['database'] = {
    ...executor('database'),
    capacity,
    ...(behaviour.canConnect !== false && { connect }),
    transaction: async (work) => {
      events.push('transaction')
      return work(executor('transaction'), null).finally(() => events.push('end of transaction'))
    },
  }
  const lane = createLane({ database, statementTimeoutMs: timeoutMs })
  const run = (name: string): Promise<unknown> => lane.run(statement(name))
  return { lane, run, events, lose: (connection: number) => losses[connection - 1]!(new Error('cut')) }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
})

describe('run', () => {
  test('one statement at a time, in the order of asking, on one connection made when it is first needed', async () => {
    const { opened, open } = gate()
    const { run, events } = laneOf({ answer: (name) => (name === 'a' ? opened : undefined) })
    const before = [...events]
    const all = Promise.all(['a', 'b', 'c'].map(run))
    await settled()
    const during = [...events]
    open()
    await all

    expect(before).toEqual([])
    expect(during).toEqual(['connect 1', '1: read_isolation', '1: a'])
    expect(events).toEqual([...during, '1: b', '1: c'])
  })

  test('gives the rows of its statement, and its failure as it is', async () => {
    const failure = failed('22003')
    const { run } = laneOf({ answer: (name) => (name === 'bad' ? Promise.reject(failure) : undefined) })

    await expect(run('good')).resolves.toMatchObject([{ name: 'good' }])
    await expect(run('bad')).rejects.toBe(failure)
    await expect(run('next')).resolves.toMatchObject([{ name: 'next' }])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a function is asked for its statement when its turn comes, once there is a connection', async () => {
    const { opened, open } = gate()
    const { lane, run, events } = laneOf({ connecting: () => opened })
    const asked = (name: string) => () => {
      events.push(`asked for ${name}`)
      return statement(name)
    }
    const all = Promise.all([lane.run(asked('a')), run('b'), lane.run(asked('c'))])
    await settled()
    const before = [...events]
    open()
    await all

    expect(before).toEqual(['connect 1'])
    expect(events.slice(2)).toEqual(['asked for a', '1: a', '1: b', 'asked for c', '1: c'])
  })

  test('a function that has nothing left to do sends nothing, and the next has its turn', async () => {
    const { lane, run, events } = laneOf()
    const nothing = lane.run(() => null)
    await run('next')

    expect(await nothing).toEqual([])
    expect(events).toEqual(['connect 1', '1: read_isolation', '1: next'])
  })
})

describe('a deadline', () => {
  test('a statement that does not answer in time fails, its session is destroyed, and the next gets a new one', async () => {
    const { run, events } = laneOf({ answer: (name) => (name === 'slow' ? never : undefined) })
    const slow = run('slow')
    const next = run('next')
    await settled()
    vi.advanceTimersByTime(timeoutMs - 1)
    await settled()
    const early = [...events]
    vi.advanceTimersByTime(1)

    const message = expect.stringContaining('slow took longer than 10000 ms')
    await expect(slow).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT', message })
    await next
    expect(early).toEqual(['connect 1', '1: read_isolation', '1: slow'])
    expect(events.slice(3)).toEqual(['destroy 1', 'connect 2', '2: read_isolation', '2: next'])
    expect(vi.getTimerCount()).toBe(0)
  })

  test('a connection that comes after its deadline goes back at once, and serves nobody', async () => {
    const { opened, open } = gate()
    const { lane, run, events } = laneOf({ connecting: (number) => (number === 1 ? opened : undefined) })
    const late = run('late')
    await settled()
    vi.advanceTimersByTime(timeoutMs)
    const message = expect.stringContaining('connecting took longer than 10000 ms')
    await expect(late).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT', message })
    await run('next')
    const before = lane.connection
    open()
    await settled()
    await run('later')

    expect(events.filter((event) => event.startsWith('destroy'))).toEqual(['destroy 1'])
    expect(events.slice(-1)).toEqual(['2: later'])
    expect(lane.connection).toBe(before)
  })

  test('a connection that comes and then does not answer is destroyed, too: it must not be kept for ever', async () => {
    const { run, events } = laneOf({ answer: (_name, on) => (on === '1' ? never : undefined) })
    const stuck = run('stuck')
    await settled()
    vi.advanceTimersByTime(timeoutMs)
    await expect(stuck).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    await run('next')

    expect(events).toContain('destroy 1')
    expect(events.slice(-1)).toEqual(['2: next'])
  })

  test('a connection that comes too late and then breaks takes nothing from the one that works', async () => {
    const [came, broke] = [gate(), gate()]
    const { lane, run, events, lose } = laneOf({
      connecting: (number) => (number === 1 ? came.opened : undefined),
      answer: (_name, on) =>
        on === '1' ? broke.opened.then(() => Promise.reject(failed('08006'))) : undefined,
    })
    const late = run('late')
    await settled()
    vi.advanceTimersByTime(timeoutMs)
    await expect(late).rejects.toThrow()
    await run('next')
    const before = lane.connection
    came.open()
    await settled()
    lose(1)
    broke.open()
    await run('later')

    expect(lane.connection).toBe(before)
    expect(events).toContain('2: later')
  })
})

describe('a connection that breaks', () => {
  test.each([
    ['nobody says why', new Error('Connection terminated unexpectedly')],
    ['the server ends it', failed('57P01')],
    ['the socket is cut', failed('08006')],
  ])(
    'under a statement (%s) is destroyed, and the next statement gets a new one',
    async (_title, failure) => {
      const { lane, run, events } = laneOf({
        answer: (name) => (name === 'cut' ? Promise.reject(failure) : undefined),
      })
      await run('first')
      const before = lane.connection
      await expect(run('cut')).rejects.toBe(failure)
      const after = lane.connection
      await run('next')

      expect(events.slice(3)).toEqual(['1: cut', 'destroy 1', 'connect 2', '2: read_isolation', '2: next'])
      expect(after).not.toBe(before)
      expect(lane.connection).toBe(after)
    },
  )

  test.each(['22003', '23514', '40001', '40P01', '53100', '57014'])(
    'is something else than a statement that was refused with %s: the connection stays',
    async (code) => {
      const answer = (name: string) => (name === 'bad' ? Promise.reject(failed(code)) : undefined)
      const { lane, run, events } = laneOf({ answer })
      await run('first')
      const before = lane.connection
      await expect(run('bad')).rejects.toMatchObject({ code })
      await run('next')

      expect(lane.connection).toBe(before)
      expect(events.slice(2)).toEqual(['1: first', '1: bad', '1: next'])
    },
  )

  test('between two statements is replaced, and the next statement is asked for with the new number', async () => {
    const { lane, run, events, lose } = laneOf()
    await run('first')
    const before = lane.connection
    lose(1)
    const seen: number[] = []
    await lane.run(() => {
      seen.push(lane.connection)
      return statement('next')
    })

    expect(seen).toEqual([lane.connection])
    expect(lane.connection).not.toBe(before)
    expect(events.slice(3)).toEqual(['connect 2', '2: read_isolation', '2: next'])
  })

  test('before it could be used fails the statement, and the next one tries again', async () => {
    const refused = new Error('ECONNREFUSED')
    const { lane, run, events } = laneOf({
      connecting: (number) => (number === 1 ? Promise.reject(refused) : undefined),
    })
    const before = lane.connection
    await expect(run('first')).rejects.toBe(refused)
    await run('next')

    expect(lane.connection).not.toBe(before)
    expect(events).toEqual(['connect 1', 'connect 2', '2: read_isolation', '2: next'])
  })

  test('when it is first asked something is destroyed, and the next statement gets a new one', async () => {
    const { run, events } = laneOf({
      answer: (_name, on) => (on === '1' ? Promise.reject(failed('57P03')) : undefined),
    })
    await expect(run('first')).rejects.toMatchObject({ code: '57P03' })
    await run('next')

    expect(events.slice(2)).toEqual(['destroy 1', 'connect 2', '2: read_isolation', '2: next'])
  })
})

describe('read committed', () => {
  const begin = 'begin isolation level read committed'

  test('where it is not the default, each statement of a session is a transaction that says so', async () => {
    const { run, events } = laneOf({ isolation: 'repeatable read' })
    const rows = await run('a')
    await run('b')

    expect(rows).toMatchObject([{ name: 'a' }])
    expect(events.slice(2)).toEqual([`1: ${begin}`, '1: a', '1: commit', `1: ${begin}`, '1: b', '1: commit'])
  })

  test('a statement that fails in it is rolled back, and the next one begins anew on the same session', async () => {
    const failure = failed('23514')
    const answer = (name: string) => (name === 'bad' ? Promise.reject(failure) : undefined)
    const { run, events } = laneOf({ isolation: 'serializable', answer })

    await expect(run('bad')).rejects.toBe(failure)
    await run('next')
    expect(events.slice(2, 5)).toEqual([`1: ${begin}`, '1: bad', '1: rollback'])
    expect(events.slice(5)).toEqual([`1: ${begin}`, '1: next', '1: commit'])
  })

  test('a session that cannot even roll back is destroyed', async () => {
    const answer = (name: string) => {
      if (name === 'bad') return Promise.reject(failed('23514'))
      return name === 'rollback' ? Promise.reject(new Error('Connection terminated')) : undefined
    }
    const { run, events } = laneOf({ isolation: 'serializable', answer })

    await expect(run('bad')).rejects.toThrow()
    expect(events.slice(-2)).toEqual(['1: rollback', 'destroy 1'])
  })

  test('the deadline covers its transaction: a commit that does not answer is a statement that did not', async () => {
    const { run, events } = laneOf({
      isolation: 'serializable',
      answer: (name) => (name === 'commit' ? never : undefined),
    })
    const stuck = run('stuck')
    await settled()
    vi.advanceTimersByTime(timeoutMs)

    await expect(stuck).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    expect(events.slice(-1)).toEqual(['destroy 1'])
  })

  test('without a session it is said inside a transaction of the database', async () => {
    const { run, events } = laneOf({ isolation: 'repeatable read', canConnect: false })

    expect(await run('a')).toMatchObject([{ name: 'a' }])
    expect(events).toEqual([
      'database: read_isolation',
      'transaction',
      'transaction: set transaction isolation level read committed',
      'transaction: a',
      'end of transaction',
    ])
  })
})

describe('a session of its own', () => {
  test.each([
    [1, 'database'],
    [2, '1'],
    [null, '1'],
  ])('with a capacity of %s statements run on %s', async (capacity, on) => {
    const { run, events } = laneOf({ capacity })
    await run('a')

    expect(events.slice(-1)).toEqual([`${on}: a`])
    expect(events.some((event) => event.startsWith('connect'))).toBe(on === '1')
  })
})

describe('close', () => {
  test('gives the session back, once, after what was asked for; later statements run on the database', async () => {
    const { opened, open } = gate()
    const { lane, run, events } = laneOf({ answer: (name) => (name === 'a' ? opened : undefined) })
    const all = Promise.all([run('a'), run('b')])
    await settled()
    const closed = lane.close()
    await settled()
    const during = events.slice(2)
    open()
    await Promise.all([all, closed])
    await run('later')
    await lane.close()

    expect(during).toEqual(['1: a'])
    expect(events.slice(2)).toEqual([
      '1: a',
      '1: b',
      'release 1',
      'database: read_isolation',
      'database: later',
    ])
  })

  test('a statement that comes while it closes does not meet the session that is given back', async () => {
    const { opened, open } = gate()
    const { lane, run, events } = laneOf({ answer: (name) => (name === 'a' ? opened : undefined) })
    const first = run('a')
    await settled()
    const closed = lane.close()
    const later = run('later')
    open()
    await Promise.all([first, closed, later])

    expect(events.slice(2)).toEqual(['1: a', 'release 1', 'database: read_isolation', 'database: later'])
  })

  test('resolves when nothing was ever asked for, and when the connection could not be made', async () => {
    const [unused, broken] = [laneOf(), laneOf({ connecting: () => Promise.reject(new Error('refused')) })]
    await expect(broken.run('a')).rejects.toThrow('refused')

    await expect(Promise.all([unused.lane.close(), broken.lane.close()])).resolves.toBeDefined()
    expect([unused.events, broken.events]).toEqual([[], ['connect 1']])
  })
})
