import { describe, expect, test } from 'vitest'
import { historyFrom } from '../../packages/postbox/src/core/failure-history.ts'
import { buryDead } from '../../packages/postbox/src/sql/bury-dead.ts'
import { listDeadLetters } from '../../packages/postbox/src/sql/list-dead-letters.ts'
import { quarantineDead } from '../../packages/postbox/src/sql/quarantine-dead.ts'
import { type Replay, replayDeadLetter } from '../../packages/postbox/src/sql/replay-dead-letter.ts'
import { rescheduleRetried } from '../../packages/postbox/src/sql/reschedule-retried.ts'
import type { Statement } from '../../packages/postbox/src/sql/statement.ts'
import { draftOf } from '../support/settle-bench.ts'
import { inMinutes, minute, minutesBetween, type StoreBench, token } from './store-bench.ts'

type ReplayStatement = (id: string, given?: Partial<Replay>) => Statement<{ readonly answer: string }>

export function describeReplay(bench: StoreBench): void {
  const byStatement: ReplayStatement = (id, given = {}) =>
    replayDeadLetter(bench.names, {
      ...{ id, by: 'me', generation: null, delayMs: 0, historyLimit: 20, wake: 'always' },
      ...given,
    })
  const byFunction: ReplayStatement = (id, { by = 'me', generation = null } = {}) => ({
    name: 'call_replay',
    text: `select ${bench.names.replay}(event_id => $1, p_new_generation => $2, p_replayed_by => $3) as answer`,
    values: [id, generation, by],
  })
  describeReplaysBy(bench, byStatement)
  describeDelaysAndLimits(bench, byStatement)
  if (bench.kind.isDatabase) describe('by the function', () => describeReplaysBy(bench, byFunction))
}

function describeReplaysBy(bench: StoreBench, statement: ReplayStatement): void {
  const replay = async (id: string, given: Partial<Replay> = {}): Promise<string> =>
    (await bench.run(statement(id, given)))[0]!.answer

  test('what is not dead is not found', async () => {
    const published = await bench.publish()

    expect(await replay(published!.id)).toBe('not_found')
    expect(await replay(draftOf().id)).toBe('not_found')
    expect(await bench.rows()).toMatchObject([{ seq: '1', failureHistory: null }])
  })

  describe.each(['moved', 'quarantined'] as const)('a dead letter that is %s', (place) => {
    const seq = place === 'moved' ? '3' : '1'

    /** One with everything, three minutes ago, and a neighbour. */
    async function died(): Promise<string> {
      const own = { key: 'k', timerId: 't', headers: { a: 'b' }, generation: 7, body: Buffer.from([0, 255]) }
      const id = await bench.die(draftOf(own), { place, attempts: 2 })
      await bench.publish(inMinutes(60))
      await bench.store.advance(3 * minute)
      return id
    }
    const replayed = async () => (await bench.rows()).find(({ key }) => key === 'k')!

    test('is among the messages again as it was, as one that nothing has happened to', async () => {
      const id = await died()

      expect(await replay(id)).toBe('replayed')

      expect(await replayed()).toMatchObject({
        ...{ seq, id, queue: 'orders', key: 'k', timerId: 't', firedTimerId: null, body: 'AP8=' },
        ...{ headers: { a: 'b' }, generation: 7, createdAt: -3, attempts: 0, deliveries: 0 },
        ...{ firstAttemptAt: null, lastAttemptAt: null, leaseToken: null, leasedUntil: null },
        ...{ failedAt: null, failureReason: null, lastError: null },
      })
      expect(await bench.dead()).toEqual([])
      expect((await bench.claim()).messages).toMatchObject([{ seq, id, timer: 't', deliveries: '1' }])
    })

    test('is found no more when it was replayed, nor by another id', async () => {
      const id = await died()
      await replay(id)

      expect([await replay(id), await replay(draftOf().id)]).toEqual(['not_found', 'not_found'])
      expect(await bench.publish()).toMatchObject({ seq: place === 'moved' ? '4' : '3' })
      expect(await bench.rows()).toHaveLength(3)
    })

    test('comes back fresh when it was moved, and due where its seq lies below every cursor', async () => {
      await replay(await died())

      expect((await replayed()).dueAt).toBe(place === 'moved' ? null : 0)
    })

    test('has another generation, or the one it had, and a history that tells of it', async () => {
      const fences = await bench.hold([{ key: 'k', generation: 7 }])
      await bench.run(rescheduleRetried(bench.names, [{ ...fences[0]!, delayMs: 0, error: 'before' }], true))
      await bench.store.advance(2 * minute)
      const { messages } = await bench.claim()
      const burial = { ...fences[0]!, reason: 'rejected', error: 'bad', attempts: 2 }
      await bench.run((place === 'moved' ? buryDead : quarantineDead)(bench.names, [burial]))
      await replay(messages[0]!.id.toUpperCase(), { generation: 8, by: 'somebody "else"' })

      const { failureHistory, generation } = await replayed()
      const { dropped, cycles } = historyFrom(JSON.stringify(failureHistory))
      const { now } = await bench.store.snapshot()
      expect([generation, dropped, cycles.length]).toEqual([8, 0, 1])
      expect(cycles[0]).toMatchObject({
        ...{ attempts: 2, deliveries: 2, reason: 'rejected', error: 'bad', replayedBy: 'somebody "else"' },
        ...{ generationBefore: 7, generationAfter: 8 },
      })
      const { firstAttemptAt, lastAttemptAt, failedAt, replayedAt } = cycles[0]!
      const times = [firstAttemptAt, lastAttemptAt, failedAt, replayedAt]
      expect(times.map((time) => minutesBetween(now, time!.getTime()))).toEqual([-2, 0, 0, 0])
    })

    test('writes its times out with microseconds, as UTC', async () => {
      await replay(await died())

      const { failureHistory } = await replayed()
      const { cycles } = failureHistory as { cycles: Record<string, unknown>[] }
      const times = [cycles[0]!['failedAt'], cycles[0]!['replayedAt'], cycles[0]!['firstAttemptAt']]
      for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    })

    test('has nulls in its history for runs that it never had', async () => {
      const id = await bench.die({ key: 'k' }, { place, error: null, attempts: 0 })
      await replay(id)

      const { failureHistory } = await replayed()
      const [cycle] = (failureHistory as { cycles: unknown[] }).cycles
      expect(cycle).toMatchObject({
        firstAttemptAt: null,
        lastAttemptAt: null,
        error: null,
        generationBefore: null,
        generationAfter: null,
      })
    })

    test('stays where it is while a timer of its name waits', async () => {
      const id = await died()
      await bench.publish({ key: 'waiting', timerId: 't', ...inMinutes(5) })
      const { messages, dead } = await bench.store.snapshot()

      expect(await replay(id)).toBe('timer_conflict')
      expect(await bench.store.snapshot()).toMatchObject({ messages, dead })
      // One that was moved has been tried to insert.
      expect((await bench.claim()).queue.top).toBe(place === 'moved' ? '4' : '3')
      await bench.cancel('t')
      expect(await replay(id)).toBe('replayed')
      expect((await replayed()).timerId).toBe('t')
    })

    test('takes the name of its timer: no other can be armed', async () => {
      await replay(await died())

      expect(await bench.publish({ timerId: 't' })).toBeNull()
      expect(await bench.cancel('t')).toBe(true)
    })
  })

  test('what a transaction replays and buries is so for itself at once', async () => {
    const id = await bench.die({ key: 'replayed' })
    const [fence] = await bench.hold([{ key: 'buried' }])
    const tx = await bench.store.begin()
    const keys = async (): Promise<readonly (string | null)[]> => {
      const query = { queue: null, reason: null, sinceMs: null, untilMs: null, key: null, search: null }
      const rows = await tx.run(listDeadLetters(bench.names, { query, limit: 9, after: null }))
      return rows.map(({ key }) => key)
    }
    await tx.run(buryDead(bench.names, [{ ...fence!, reason: 'rejected', error: null, attempts: 1 }]))
    const before = (await keys()).toSorted()
    const answers = [await tx.run(statement(id)), await tx.run(statement(id))].map(([row]) => row!.answer)

    expect([before, answers, await keys()]).toEqual([
      ['buried', 'replayed'],
      ['replayed', 'not_found'],
      ['buried'],
    ])
    await tx.commit()
    expect(await bench.dead()).toMatchObject([{ key: 'buried' }])
  })

  test('of two dead letters of one id the newest is replayed, wherever it lies, then the other', async () => {
    const { id } = draftOf()
    for (const [key, place] of Object.entries({ a: 'quarantined', b: 'moved', c: 'quarantined' } as const)) {
      await bench.die({ id, key }, { place })
      await bench.store.advance(minute)
    }
    const alive = async (): Promise<readonly (string | null)[]> =>
      (await bench.rows()).filter(({ failedAt }) => failedAt === null).map(({ key }) => key)

    expect([await replay(id), await alive()]).toEqual(['replayed', ['c']])
    expect([await replay(id), (await alive()).toSorted()]).toEqual(['replayed', ['b', 'c']])
    expect([await replay(id), (await alive()).toSorted()]).toEqual(['replayed', ['a', 'b', 'c']])
  })
}

function describeDelaysAndLimits(bench: StoreBench, statement: ReplayStatement): void {
  const replay = async (id: string, given: Partial<Replay>): Promise<string> =>
    (await bench.run(statement(id, given)))[0]!.answer

  describe.each(['moved', 'quarantined'] as const)('a dead letter that is %s', (place) => {
    test('is due after a delay', async () => {
      await replay(await bench.die({ key: 'k' }, { place }), { delayMs: 5 * minute })

      expect((await bench.rows())[0]).toMatchObject({ dueAt: 5 })
      expect((await bench.claim()).seqs).toEqual([])
    })

    test('remembers every life that it had, up to a limit, and counts what it forgot', async () => {
      const id = await bench.die({ key: 'k' }, { place, error: 'life 0', attempts: 0 })
      for (let life = 1; life <= 4; life++) {
        await replay(id, { historyLimit: 3, generation: life })
        const { fences } = await bench.claim()
        const burial = { seq: fences[0]!.seq, token, reason: 'rejected', error: `life ${life}`, attempts: 1 }
        await bench.run((place === 'moved' ? buryDead : quarantineDead)(bench.names, [burial]))
      }

      const [row] = [...(await bench.dead()), ...(await bench.rows())]
      const { dropped, cycles } = historyFrom(JSON.stringify(row!.failureHistory))
      expect(dropped).toBe(1)
      expect(cycles.map(({ error }) => error)).toEqual(['life 1', 'life 2', 'life 3'])
      expect(
        cycles.map(({ generationBefore, generationAfter }) => [generationBefore, generationAfter]),
      ).toEqual([
        [1, 2],
        [2, 3],
        [3, 4],
      ])
      await replay(id, { historyLimit: 2 })
      const [again] = await bench.rows()
      expect(historyFrom(JSON.stringify(again!.failureHistory))).toMatchObject({
        dropped: 3,
        cycles: [{ error: 'life 3' }, { error: 'life 4', generationBefore: 4, generationAfter: 4 }],
      })
    })
  })
}
