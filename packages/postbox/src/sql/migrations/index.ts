import { messages } from './0001-messages.ts'
import { decisions } from './0002-decisions.ts'
import type { Migration } from './migration.ts'

/** All steps, oldest first. */
export const migrations: readonly Migration[] = [messages, decisions]

/** The version of the schema that this build of the library works with. */
export const currentVersion: number = migrations.length
