import { describe, expect, test, vi } from 'vitest'
import { fakeClock } from '../../../../tests/support/fake-clock.ts'
import type { Lease } from '../core/lease.ts'
import type { Settlement } from '../core/settlement.ts'
import { resolveNames } from '../sql/names.ts'
import type { Lane } from './lane.ts'
import { createSettler } from './settler.ts'

const names = resolveNames({ schema: 'public', table: 'outbox' })
const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

function acked(seq: string): Settlement {
  const fixed = { token: 'token', id: seq, queue: 'orders', key: null, body: new Uint8Array(0), headers: {} }
  const lease: Lease = { ...fixed, seq, attempt: 1, deliveries: 1, createdAt: new Date(0), generation: null }
  return { write: 'delete', lease }
}

describe('the breaker', () => {
  // What is still to be written may have outlived its lease: a claim would take our own messages, and run them again.
  test('closes when everything that waited is written, not with the first statement that succeeds', async () => {
    vi.spyOn(Math, 'random').mockReturnValue(0)
    const clock = fakeClock()
    const answers: ((failure?: Error) => Promise<void>)[] = []
    const run = (): Promise<readonly object[]> =>
      new Promise((resolve, reject) => {
        answers.push((failure) => {
          if (failure === undefined) resolve([])
          else reject(failure)
          return settled()
        })
      })
    const lane = { run } as unknown as Lane
    const giveUp = new AbortController().signal
    const settler = createSettler({ lane, names, clock, log: () => {}, giveUp, changed: () => {} })
    for (const seq of ['1', '2', '3']) void settler.settle(acked(seq), 1)
    await settled()
    await answers[0]!(Object.assign(new Error('disk full'), { code: '53100' }))
    clock.advance(50)
    await settled()
    const stuck: boolean[] = [settler.isStuck]
    for (let n = 1; n <= 3; n++) {
      await answers[n]!()
      stuck.push(settler.isStuck)
    }
    vi.restoreAllMocks()

    expect(stuck).toEqual([true, true, true, false])
  })
})
