import { expect, test } from 'vitest'
import { dueMsOf, publishWhenDue } from './timetable.ts'

/** What is published when, by a publisher that takes so long for a group. */
async function groupsOf(messages: number, takesMs: number): Promise<readonly (readonly number[])[]> {
  let now = 0
  const groups: (readonly number[])[] = []
  const timetable = {
    messages,
    perSecond: 1_000,
    elapsed: () => now,
    sleep: async (ms: number) => {
      now += ms
    },
  }
  await publishWhenDue(timetable, 10, async (from, count) => {
    groups.push([now, from, count])
    now += takesMs
  })
  return groups
}

test('at every tick what is due by then is published together, each message once', async () => {
  expect(await groupsOf(35, 3)).toEqual([
    [0, 0, 1],
    [10, 1, 10],
    [20, 11, 10],
    [30, 21, 10],
    [40, 31, 4],
  ])
})

test('a publisher that misses a tick takes more at the next, and nothing before it is due', async () => {
  const groups = await groupsOf(100, 25)
  expect(groups.slice(0, 3)).toEqual([
    [0, 0, 1],
    [30, 1, 30],
    [60, 31, 30],
  ])
  for (const [at, from, count] of groups) expect(dueMsOf(from! + count! - 1, 1_000)).toBeLessThanOrEqual(at!)
  expect(groups.reduce((sum, [, , count]) => sum + count!, 0)).toBe(100)
})
