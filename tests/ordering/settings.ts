// The sizes of the proof: a light one for every run, a heavy one before anything about claims or leases is called done.
import { randomInt } from 'node:crypto'
import { longWaitLimitMs } from '../support/patience.ts'
import type { Scenario } from './scenario.ts'

/** POSTBOX_HISTORY_SEED repeats the choices of a run, though not its timing. */
export function chosenSeed(): number {
  return Number(process.env['POSTBOX_HISTORY_SEED'] ?? randomInt(2 ** 31))
}

/** What is left to say: the queue, and perhaps other options of the subscription. */
export type Sized = Omit<Scenario, 'seed' | 'queue'>

export const light: Sized = {
  publishers: 3,
  consumers: 2,
  keys: 20,
  messages: 600,
  kills: 1,
  stalls: 0,
  // Long enough for a machine that is busy with other tests: a lease that is renewed too late is not excused.
  options: { concurrency: 10, leaseMs: 6_000, maxDeliveries: null, pollMs: { min: 20, max: 100 } },
  chances: { fails: 0.04, snoozes: 0.02, isSlow: 0.002, transacts: 0.15, followsOn: 0.1 },
  delayed: 0.03,
  mostWaiting: 300,
  withinMs: longWaitLimitMs,
}

export const heavy: Sized = {
  publishers: 8,
  consumers: 3,
  keys: 200,
  messages: 20_000,
  kills: 24,
  stalls: 8,
  options: { concurrency: 20, leaseMs: 3_000, maxDeliveries: null, pollMs: { min: 20, max: 200 } },
  chances: { fails: 0.04, snoozes: 0.02, isSlow: 0.001, transacts: 0.15, followsOn: 0.1 },
  delayed: 0.03,
  mostWaiting: 2_000,
  withinMs: 900_000,
}
