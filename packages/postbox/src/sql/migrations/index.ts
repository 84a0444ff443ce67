import { messages } from './0001-messages.ts'
import { timerNames } from './0002-timer-names.ts'
import { deadLetterOrder } from './0003-dead-letter-order.ts'
import type { Migration } from './migration.ts'

/** All steps, oldest first. */
export const migrations: readonly Migration[] = [messages, timerNames, deadLetterOrder]

/** The version of the schema that this build of the library works with. */
export const currentVersion: number = migrations.length
