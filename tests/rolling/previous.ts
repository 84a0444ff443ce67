// The version before, to be run beside this one (docs/decisions/0026-previous-build.md).
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

export const previousBuild: string = join(import.meta.dirname, 'previous-build.js')

/** Described by today's types: ask it only for what it had. */
export const { createOutbox: createPreviousOutbox } = (await import(
  pathToFileURL(previousBuild).href
)) as Pick<typeof import('postbox'), 'createOutbox'>
