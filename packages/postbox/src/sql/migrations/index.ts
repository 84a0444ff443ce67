import { messages } from './0001-messages.ts'
import { timerNames } from './0002-timer-names.ts'
import { deadLetterOrder } from './0003-dead-letter-order.ts'
import { deliveredAndOperations } from './0004-delivered-and-operations.ts'
import { failedOrder } from './0005-failed-order.ts'
import { failedQueueOrder } from './0006-failed-queue-order.ts'
import { handledOrder } from './0007-handled-order.ts'
import { forOperators } from './0008-for-operators.ts'
import { order } from './0009-order.ts'
import { resumedQueues } from './0010-resumed-queues.ts'
import type { Migration } from './migration.ts'

/** All steps, oldest first. */
export const migrations: readonly Migration[] = [
  messages,
  timerNames,
  deadLetterOrder,
  deliveredAndOperations,
  failedOrder,
  failedQueueOrder,
  handledOrder,
  forOperators,
  order,
  resumedQueues,
]

/** The version of the schema that this build of the library works with. */
export const currentVersion: number = migrations.length
