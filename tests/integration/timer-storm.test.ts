import { test } from 'vitest'
import { useDatabase } from '../support/database.ts'
import { longTestLimitMs, longWaitLimitMs } from '../support/patience.ts'
import { weatherTimerStorm } from '../support/timer-storm.ts'

const database = useDatabase()

test(
  '2,000 timers are armed, cancelled and armed again while two outboxes claim them: none fires twice, none is lost',
  () => weatherTimerStorm(database, { timers: 2_000, withinMs: longWaitLimitMs }),
  longTestLimitMs,
)
