import { expect, test } from 'vitest'
import { countMessages } from '../../packages/postbox/src/sql/count-messages.ts'
import { releaseLeases } from '../../packages/postbox/src/sql/release-leases.ts'
import { inMinutes, minute, minutesBetween, type StoreBench } from './store-bench.ts'

export function describeCounts(bench: StoreBench): void {
  const count = (queues: readonly string[], bound = 100) =>
    bench.run(countMessages(bench.names, queues, bound))
  const few = { manynow: 'false', manylater: 'false' }

  test('each queue that is asked for is counted, in order, an empty one as well', async () => {
    await bench.publish({ queue: 'b' })
    await bench.publish({ queue: 'not asked for' })

    expect(await count(['c', 'a', 'b'])).toMatchObject([
      { queue: 'a', ready: '0', leased: '0', scheduled: '0', ...few, oldest: null },
      { queue: 'b', ready: '1', leased: '0', scheduled: '0', ...few, oldest: expect.any(String) },
      { queue: 'c', ready: '0', leased: '0', scheduled: '0', ...few, oldest: null },
    ])
    expect(await count([])).toEqual([])
  })

  test('what is fresh and what is due count together, what is due later apart, and what is dead not at all', async () => {
    await bench.die({}, { place: 'quarantined' })
    for (const given of [{}, inMinutes(1), inMinutes(9), {}, inMinutes(1), inMinutes(9)])
      await bench.publish(given)
    await bench.store.advance(2 * minute)
    // One of each lane: what is due goes first.
    await bench.claim({ room: 3, leaseMs: 9 * minute })

    expect(await count(['orders'])).toMatchObject([{ ready: '1', leased: '3', scheduled: '2', ...few }])
  })

  test('a lease that has ended counts as none', async () => {
    await bench.hold(2)
    await bench.store.advance(2 * minute)

    expect(await count(['orders'])).toMatchObject([{ ready: '2', leased: '0' }])
  })

  test('each count stops at its bound, and says so', async () => {
    for (let n = 0; n < 3; n++) await bench.publish()
    for (let n = 0; n < 4; n++) await bench.publish(inMinutes(9))

    expect(await count(['orders'], 4)).toMatchObject([
      { ready: '3', manynow: 'false', scheduled: '4', manylater: 'true' },
    ])
    expect(await count(['orders'], 3)).toMatchObject([
      { ready: '3', manynow: 'true', scheduled: '3', manylater: 'true' },
    ])
    await bench.store.advance(10 * minute)
    expect(await count(['orders'], 4)).toMatchObject([
      { ready: '7', manynow: 'true', scheduled: '0', manylater: 'false' },
    ])
    expect(await count(['orders'], 5)).toMatchObject([{ ready: '7', manynow: 'false' }])
  })

  test('the oldest is that which has been ready for longest: since it came, or since it was due', async () => {
    const oldest = async (): Promise<number> => minutesBetween(0, (await count(['orders']))[0]!.oldest)
    await bench.publish(inMinutes(1))
    await bench.store.advance(6 * minute)
    await bench.publish()
    await bench.store.advance(2 * minute)

    expect(await oldest()).toBe(7)
    const { fences } = await bench.claim({ room: 1 })
    expect(await oldest()).toBe(2)
    await bench.run(releaseLeases(bench.names, fences, true))
    expect(await oldest()).toBe(7)
  })
}
