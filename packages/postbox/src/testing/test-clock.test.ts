import { expect, test } from 'vitest'
import { createTestClock } from './test-clock.ts'

const never = new AbortController().signal

function sleepers() {
  const clock = createTestClock(1_000)
  const woken: string[] = []
  const sleep = (name: string, ms: number, signal = never) =>
    clock.sleep(ms, signal).then(() => void woken.push(name))
  return { clock, woken, sleep }
}

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('time stands still until it is moved, and never goes back', () => {
  const clock = createTestClock(1_000)
  expect(clock.now()).toBe(1_000)
  clock.moveTo(1_500)
  clock.moveTo(1_200)
  expect(clock.now()).toBe(1_500)
})

test('sleepers wake when their time has come, in the order of their times', async () => {
  const { clock, woken, sleep } = sleepers()
  void sleep('late', 300)
  void sleep('early', 100)
  void sleep('later', 301)
  expect(clock.nextWake).toBe(1_100)

  clock.moveTo(1_300)
  await turn()

  expect(woken).toEqual(['early', 'late'])
  expect(clock.nextWake).toBe(1_301)
})

test('an abort wakes a sleeper; one that is aborted already, or has no time to sleep, does not sleep', async () => {
  const { clock, woken, sleep } = sleepers()
  const controller = new AbortController()
  void sleep('aborted', 100, controller.signal)
  void sleep('already', 100, AbortSignal.abort())
  void sleep('nothing', 0)
  controller.abort()
  await turn()

  expect(woken.sort()).toEqual(['aborted', 'already', 'nothing'])
  expect(clock.nextWake).toBe(Number.POSITIVE_INFINITY)
  expect(clock.sleeps).toBe(3)
})
