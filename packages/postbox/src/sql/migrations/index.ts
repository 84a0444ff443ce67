import { messages } from './0001-messages.ts'
import type { Migration } from './migration.ts'

/** All steps, oldest first. */
export const migrations: readonly Migration[] = [messages]

/** The version of the schema that this build of the library works with. */
export const currentVersion: number = migrations.length
