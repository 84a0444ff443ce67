import { getEventListeners } from 'node:events'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import { recordedEvents } from '../../../../tests/support/recorded-events.ts'
import type { Hearing } from '../adapters/executor.ts'
import { resolveNames } from '../sql/names.ts'
import type { Statement } from '../sql/statement.ts'
import type { Failpoint } from './failpoint.ts'
import type { Lane } from './lane.ts'
import { keepListening } from './listener.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const ownChannel = 'postbox:own'
const [timeoutMs, heartbeatMs, answerMs] = [10_000, 30_000, 5_000]
const never = new Promise<never>(() => {})
const slowly = (): Promise<void> => settled().then(settled)
const statement = (name: string): Statement => ({ name, text: name, values: [] })

/** Resolves when everything that could run without waiting has run, unhandled rejections included. */
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

/** A promise and the functions that settle it. */
function gate() {
  let open = (): void => {}
  let fail = (_error: Error): void => {}
  const opened = new Promise<void>((resolve, reject) => {
    open = resolve
    fail = reject
  })
  return { opened, open, fail }
}

interface World {
  /** What becomes of a word that is sent to ourselves. */
  word?: 'heard' | 'unheard' | 'queue half full' | 'cannot be sent'
  /** Awaited before a word is sent, a connection listens, runs a statement, is given back. */
  sending?: () => Promise<unknown>
  opening?: () => Promise<unknown>
  running?: (name: string) => Promise<unknown> | undefined
  ending?: () => Promise<unknown>
  readonly failpoint?: Failpoint
}

/** A listener in a world that can change while it listens, as far as it comes by itself, and a record of what it did. */
async function listenerOf(world: World = {}) {
  const events: string[] = []
  const { teller, told: said } = recordedEvents()
  const hearings: Hearing[] = []
  const queues: string[] = []
  const told: (number | null)[] = []
  const clock = fakeClock()
  const halt = new AbortController()
  const listen = async (channels: readonly string[], hearing: Hearing) => {
    const number = hearings.push(hearing)
    events.push(`listen ${number} to ${channels.join()}`)
    await world.opening?.()
    const run = async <Row>({ name }: Statement<Row>): Promise<readonly Row[]> => {
      events.push(`${number}: ${name}`)
      await world.running?.(name)
      return [{ name }] as readonly unknown[] as readonly Row[]
    }
    const end = async (): Promise<void> => {
      events.push(`end ${number}`)
      await world.ending?.()
    }
    return { run, end, destroy: () => void events.push(`destroy ${number}`) }
  }
  const send = async ({ name, values }: Statement): Promise<readonly unknown[]> => {
    const { word = 'heard' } = world
    events.push(`lane: ${name} to ${values[0]}`)
    await world.sending?.()
    if (word === 'cannot be sent') throw new Error('the lane is down')
    if (word === 'queue half full') return []
    if (word === 'heard') hearings.at(-1)!.notified(ownChannel, '')
    return [{ sent: 'sent' }]
  }
  const listener = keepListening(
    {
      listen,
      lane: { run: send } as unknown as Lane,
      names,
      clock,
      teller,
      statementTimeoutMs: timeoutMs,
      failpoint: world.failpoint,
      ownChannel,
      notified: (queue) => queues.push(queue),
      changed: () => told.push(listener.ear),
    },
    halt.signal,
  )
  const pass = async (ms: number): Promise<void> => {
    clock.advance(ms)
    await settled()
  }
  const kinds = (): string[] => said.map(({ kind }) => kind)
  const lose = (error: Error): Promise<void> => {
    hearings.at(-1)!.lost(error)
    return settled()
  }
  await settled()
  return { listener, world, events, said, kinds, hearings, queues, told, clock, pass, lose, halt }
}

const [deaf, again] = ['listener_lost', 'listener_restored']
const cut = new Error('Connection terminated unexpectedly')

beforeEach(() => {
  vi.spyOn(Math, 'random').mockReturnValue(0)
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
})

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

describe('listening', () => {
  test('begins when a word sent to ourselves on the other connection was heard, and not before', async () => {
    const { listener, events, told, hearings, said } = await listenerOf({ word: 'unheard' })
    const before = [listener.ear, [...told]]
    hearings[0]!.notified(ownChannel, '')
    await settled()

    expect(events).toEqual([`listen 1 to ${names.channel},${ownChannel}`, `lane: send_word to ${ownChannel}`])
    expect(before).toEqual([null, []])
    expect(told).toEqual([listener.ear])
    expect(listener.ear).not.toBeNull()
    expect(said).toEqual([])
  })

  test('tells of the queue that somebody published to; our own word is not one', async () => {
    const { hearings, queues } = await listenerOf()
    hearings[0]!.notified(names.channel, 'orders')
    hearings[0]!.notified(names.channel, 'emails')

    expect(queues).toEqual(['orders', 'emails'])
  })

  test('is asked for a sign of life every half minute; nothing is told while it gives one', async () => {
    const { listener, events, told, pass, clock, said } = await listenerOf()
    const ear = listener.ear
    await pass(heartbeatMs - 1)
    const early = events.length
    await pass(1)
    await pass(heartbeatMs)

    expect([early, events.length]).toEqual([2, 4])
    expect(clock.left).toEqual([heartbeatMs])
    expect([listener.ear, told, said]).toEqual([ear, [ear], []])
  })

  test('goes on while the server’s notification queue is half full: there is nothing to be learnt', async () => {
    const { listener, told, pass, clock, said } = await listenerOf({ word: 'queue half full' })
    await pass(heartbeatMs)

    expect(listener.ear).not.toBeNull()
    expect([told, said]).toEqual([[listener.ear], []])
    expect(clock.asked).toEqual([heartbeatMs, heartbeatMs])
  })

  test('passes its failpoints in order', async () => {
    const passed: string[] = []
    const note = async (name: string): Promise<void> => void passed.push(name)
    await listenerOf({ failpoint: { reach: note }, opening: () => note('opening'), running: note })

    expect(passed).toEqual(['before_listen', 'opening', 'after_listen'])
  })
})

describe('who does not hear', () => {
  test.each<[string, World]>([
    ['the word does not arrive', { word: 'unheard' }],
    ['the word cannot be sent', { word: 'cannot be sent' }],
    ['no connection can be made', { opening: () => Promise.reject(cut) }],
  ])('says so once, and tries again ever later until it hears (%s)', async (_title, world) => {
    const { listener, kinds, told, clock, pass } = await listenerOf(world)
    const delays: number[] = []
    for (let tries = 1; tries <= 5; tries++) {
      if (world.word === 'unheard') await pass(answerMs)
      delays.push(...clock.left)
      if (tries === 5) Object.assign(world, { word: 'heard', opening: undefined })
      await pass(clock.left[0]!)
    }

    expect(delays).toEqual([50, 100, 200, 400, 800])
    expect(kinds()).toEqual([deaf, again])
    expect(listener.ear).not.toBeNull()
    expect(told).toEqual([listener.ear])
  })

  test('waits five seconds for the word, says what is wrong and destroys the connection', async () => {
    const { events, said, pass } = await listenerOf({ word: 'unheard' })
    await pass(answerMs - 1)
    const early = [said.length, events.length]
    await pass(1)

    expect(early).toEqual([0, 2])
    expect(events.slice(2)).toEqual(['destroy 1'])
    const message = expect.stringMatching(/sent to ourselves did not arrive.* not a pooler/)
    expect(said).toMatchObject([{ kind: deaf, delayMs: 50, error: { message } }])
  })

  test('at a heartbeat has lost its connection', async () => {
    const { listener, world, events, kinds, told, pass } = await listenerOf()
    const ear = listener.ear
    world.word = 'unheard'
    await pass(heartbeatMs)
    const waiting = listener.ear
    await pass(answerMs)

    expect([waiting, listener.ear, told]).toEqual([ear, null, [ear, null]])
    expect(events.at(-1)).toBe('destroy 1')
    expect(kinds()).toEqual([deaf])
  })

  test('leaves nothing behind on the signal, however often it tries', async () => {
    const { halt, clock, pass } = await listenerOf({ opening: () => Promise.reject(cut) })
    const before = getEventListeners(halt.signal, 'abort').length
    for (let tries = 1; tries <= 5; tries++) await pass(clock.left[0]!)

    expect(getEventListeners(halt.signal, 'abort').length).toBe(before)
  })
})

describe('a connection that is lost', () => {
  test('is told of, destroyed and made anew: it is restored, with another number', async () => {
    const { listener, events, said, told, pass, lose } = await listenerOf()
    const first = listener.ear
    await lose(cut)
    const between = listener.ear
    await pass(50)

    expect(events.slice(2, 4)).toEqual(['destroy 1', expect.stringMatching(/^listen 2 to /)])
    expect(listener.ear).not.toBe(first)
    expect([between, told]).toEqual([null, [first, null, listener.ear]])
    expect(said).toEqual([{ kind: deaf, error: cut, delayMs: 50 }, { kind: again }])
  })

  test('before it was ever heard was never listening: nothing is restored, and the next try is later', async () => {
    const { listener, kinds, told, clock, pass, lose } = await listenerOf({ word: 'unheard' })
    await lose(cut)
    const first = [...clock.left]
    await pass(50)
    await lose(cut)

    expect([first, clock.left]).toEqual([[50], [100]])
    expect(kinds()).toEqual([deaf])
    expect([listener.ear, told]).toEqual([null, []])
  })

  test('within a minute, again and again, is made anew ever later; after more than a minute, soon', async () => {
    const { clock, pass, lose } = await listenerOf()
    const delays: number[] = []
    for (let times = 1; times <= 4; times++) {
      if (times === 4) for (let beats = 0; beats < 3; beats++) await pass(heartbeatMs)
      await lose(cut)
      delays.push(...clock.left)
      await pass(clock.left[0]!)
    }

    expect(delays).toEqual([50, 100, 200, 50])
  })
})

describe('a statement on the connection that listens', () => {
  test('runs there, one at a time, in the order of asking', async () => {
    const { opened, open } = gate()
    const { listener, events } = await listenerOf({ running: (name) => (name === 'a' ? opened : undefined) })
    const all = Promise.all(['a', 'b'].map((name) => listener.run(statement(name))))
    await settled()
    const during = events.slice(2)
    open()

    expect(await all).toEqual([[{ name: 'a' }], [{ name: 'b' }]])
    expect([during, events.slice(2)]).toEqual([['1: a'], ['1: a', '1: b']])
  })

  test('is refused while nobody listens, which ends nothing', async () => {
    const { listener, events, hearings } = await listenerOf({ word: 'unheard' })
    await expect(listener.run(statement('early'))).rejects.toThrow('nobody listens')
    hearings[0]!.notified(ownChannel, '')
    await settled()

    await expect(listener.run(statement('later'))).resolves.toBeDefined()
    expect(events.slice(2)).toEqual(['1: later'])
  })

  test('stays with the connection that it was asked for on: the next one holds none of its locks', async () => {
    const { opened, fail } = gate()
    const running = (name: string) => (name === 'a' ? opened : undefined)
    const { listener, events, pass, lose } = await listenerOf({ running })
    const all = Promise.allSettled(['a', 'b'].map((name) => listener.run(statement(name))))
    await lose(cut)
    await pass(50)
    const isBack = listener.ear !== null
    fail(cut)
    await all

    expect(isBack).toBe(true)
    expect(events).not.toContain('2: b')
  })

  test('that fails ends the listening: who holds which lock is not known any more', async () => {
    const failure = Object.assign(new Error('refused'), { code: '42501' })
    const { listener, events, said, pass } = await listenerOf({
      running: () => Promise.reject(failure),
    })
    await expect(listener.run(statement('lie_down'))).rejects.toBe(failure)
    await settled()
    const deafNow = listener.ear
    await pass(50)

    expect(deafNow).toBeNull()
    expect(events.slice(3, 4)).toEqual(['destroy 1'])
    expect(listener.ear).not.toBeNull()
    expect(said).toEqual([{ kind: deaf, error: failure, delayMs: 50 }, { kind: again }])
  })

  test('that takes too long ends it, too', async () => {
    const { listener, events, said } = await listenerOf({ running: () => never })
    const stuck = listener.run(statement('lie_down'))
    await settled()
    vi.advanceTimersByTime(timeoutMs - 1)
    await settled()
    const early = listener.ear
    vi.advanceTimersByTime(1)

    await expect(stuck).rejects.toMatchObject({ code: 'OUTBOX_STATEMENT_TIMEOUT' })
    await settled()
    expect(early).not.toBeNull()
    expect([listener.ear, events.at(-1)]).toEqual([null, 'destroy 1'])
    expect(said).toMatchObject([{ kind: deaf, error: { code: 'OUTBOX_STATEMENT_TIMEOUT' } }])
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('halt', () => {
  test('gives the connection back, once what runs on it has ended, and ends', async () => {
    const { opened, open } = gate()
    const { listener, events, told, halt, said, clock } = await listenerOf({ running: () => opened })
    const [ear, running] = [listener.ear, listener.run(statement('get_up'))]
    await settled()
    halt.abort()
    await settled()
    const during = [listener.ear, events.at(-1)]
    open()
    await Promise.all([running, listener.ended])

    expect(during).toEqual([null, '1: get_up'])
    expect(events.slice(3)).toEqual(['end 1'])
    expect([told, said, clock.left]).toEqual([[ear, null], [], []])
  })

  test('a connection that is being given back and does not answer is destroyed: it must not hold up a stop', async () => {
    const { listener, events, halt, said } = await listenerOf({ ending: () => never })
    halt.abort()
    await settled()
    vi.advanceTimersByTime(timeoutMs)
    await settled()

    expect([events.slice(2), said]).toEqual([['end 1', 'destroy 1'], []])
    await expect(Promise.race([listener.ended.then(() => 'ended'), settled()])).resolves.toBe('ended')
  })

  test.each([
    ['when it comes, it goes back', true, ['end 1']],
    ['when it cannot be made, that is nobody’s concern', false, []],
  ])('waits a second at most for a connection that is being opened: %s', async (_title, isMade, expected) => {
    const unhandled: unknown[] = []
    const note = (reason: unknown): unknown => unhandled.push(reason)
    process.on('unhandledRejection', note)
    const { opened, open, fail } = gate()
    const { listener, events, told, halt, said, clock } = await listenerOf({ opening: () => opened })
    halt.abort()
    await settled().then(() => clock.advance(1_000))
    await listener.ended
    const before = events.slice(1)
    if (isMade) open()
    else fail(cut)
    await settled()
    process.off('unhandledRejection', note)

    expect([before, events.slice(1)]).toEqual([[], expected])
    expect([told, said, unhandled]).toEqual([[], [], []])
  })

  test.each([
    ['for the word', { word: 'unheard' as const }, ['end 1']],
    ['for a word on its way', { word: 'unheard' as const, sending: slowly }, ['end 1']],
    ['to try again', { word: 'cannot be sent' as const }, ['destroy 1']],
  ])('ends the wait %s, and makes no further connection', async (_title, world, expected) => {
    const { listener, events, told, halt, clock } = await listenerOf(world)
    halt.abort()
    await listener.ended

    expect(events.slice(2)).toEqual(expected)
    expect([told, listener.ear, clock.left]).toEqual([[], null, []])
  })
})
