// Two operators at one key, and publishers that have not committed.
import { randomUUID } from 'node:crypto'
import { expect, test } from 'vitest'
import type { Executor } from '../../packages/postbox/src/adapters/executor.ts'
import { discardDeadLetter } from '../../packages/postbox/src/sql/discard-dead-letter.ts'
import type { StoreBench } from './store-bench.ts'
import { type KeyBench, useKeys } from './store-key-bench.ts'

type Decision = (keys: KeyBench, id: string, on?: Executor) => Promise<unknown>

const resuming: Decision = ({ resume }, _id, on) => resume('a', on)
const skipping: Decision = ({ skip }, _id, on) => skip('a', on)
const replaying: Decision = ({ replay }, id, on) => replay(id, on === undefined ? {} : { on })
const discarding: Decision = async ({ bench }, id, on = bench.store.database) =>
  (await on.run(discardDeadLetter(bench.names, { id, by: 'ben', operation: randomUUID(), wake: 'always' })))
    .length

const decisions = { resume: resuming, skip: skipping }
const all = { ...decisions, discard: discarding, replay: replaying }
type Name = keyof typeof decisions
const pairs = (Object.keys(decisions) as Name[]).flatMap((second) =>
  (Object.keys(all) as (keyof typeof all)[]).map((first) => [second, first] as const),
)

export function describeKeyWaits(bench: StoreBench): void {
  const keys = useKeys(bench)

  test.each(pairs)(
    'a %s waits for somebody who does a %s, and finds nothing parked',
    async (second, first) => {
      const id = await keys.die('parked')
      const next = await keys.publish()
      const tx = await bench.store.begin()
      await all[first](keys, id, tx)

      const decision = decisions[second](keys, id)
      await bench.store.untilWaiting()
      await tx.commit()

      expect(await decision).toBeNull()
      expect(await keys.inTable()).toContain(next)
      const isGone = first === 'skip' || first === 'discard'
      expect((await keys.handleAll()).map((row) => row.id)).toEqual(isGone ? [next] : [id, next])
    },
  )

  test.each(['resume', 'skip'] as const)(
    'a %s goes on when whoever was before it rolls back',
    async (name) => {
      const id = await keys.die('parked')
      const tx = await bench.store.begin()
      await keys.skip('a', tx)

      const second = decisions[name](keys, id)
      await bench.store.untilWaiting()
      await tx.rollback()

      expect(await second).toBe(id)
    },
  )

  test.each(['resume', 'skip'] as const)(
    'a discard waits for somebody who does a %s, and deletes only what is dead',
    async (first) => {
      const id = await keys.die('parked')
      const next = await keys.publish()
      const tx = await bench.store.begin()
      await decisions[first](keys, id, tx)

      const discard = discarding(keys, id)
      await bench.store.untilWaiting()
      await tx.commit()

      const lives = first === 'resume'
      expect(await discard).toBe(lives ? 0 : 1)
      expect(await keys.inTable()).toEqual(lives ? [id, next] : [next])
      expect((await keys.row(next)).afterDead).toBe(lives ? null : id)
    },
  )

  test('a replay waits for somebody who skips the key, and then goes behind it', async () => {
    const id = await keys.die('parked')
    const next = await keys.publish()
    const tx = await bench.store.begin()
    await keys.skip('a', tx)

    const replay = keys.replay(id)
    await bench.store.untilWaiting()
    await tx.commit()

    expect(await replay).toMatchObject([{ answer: 'replayed', lands: 'behind_key' }])
    expect(await keys.inTable()).toEqual([next, id])
  })

  test.each(['moved', 'quarantined'] as const)(
    'a replay of one that was %s waits for whoever publishes to its key, and is behind what he commits',
    async (how) => {
      const id = await keys.die(how)
      const tx = await bench.store.begin()
      const published = await keys.publish({}, tx)

      const replay = keys.replay(id)
      await bench.store.untilWaiting()
      await tx.commit()

      expect(await replay).toMatchObject([{ answer: 'replayed', lands: 'behind_key' }])
      expect(await keys.inTable()).toEqual([published, id])
    },
  )

  test('a publisher waits for a replay to his key, and is behind it', async () => {
    const id = await keys.die('moved')
    const tx = await bench.store.begin()
    await keys.replay(id, { on: tx })

    const publishing = keys.publish()
    await bench.store.untilWaiting()
    await tx.commit()

    const published = await publishing
    expect(await keys.inTable()).toEqual([id, published])
  })

  test('a replay that is due later, one of a timer, and one in its place wait for no publisher', async () => {
    const later = await keys.die('moved')
    const timer = await keys.die('quarantined', { timerId: 't', conflict: 'keep' })
    const parked = await keys.die('parked')
    const tx = await bench.store.begin()
    await keys.publish({}, tx)

    expect(await keys.replay(later, { delayMs: 60_000 })).toMatchObject([{ answer: 'replayed' }])
    expect(await keys.replay(timer)).toMatchObject([{ answer: 'replayed' }])
    expect(await keys.replay(parked)).toMatchObject([{ answer: 'replayed', lands: 'in_place' }])
    await tx.rollback()
  })
}
