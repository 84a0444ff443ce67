import { randomUUID } from 'node:crypto'
import { readFile, rename, writeFile } from 'node:fs/promises'
import { PGlite } from '@electric-sql/pglite'
import { inject } from 'vitest'

/**
 * An empty database in this process: a copy of the first one of the run. To make one takes three seconds of a core, to copy it 0.4; a machine that
 * is busy would come to the limit of a test by that alone.
 */
export async function openPGlite(): Promise<PGlite> {
  const template = inject('pgliteTemplate')
  const made = await readFile(template).catch(() => null)
  if (made !== null) return PGlite.create({ loadDataDir: new Blob([made]) })
  const db = await PGlite.create()
  // Two files may begin at once, and nobody must read half of it.
  const unfinished = `${template}-${randomUUID()}`
  await writeFile(unfinished, Buffer.from(await (await db.dumpDataDir('none')).arrayBuffer()))
  await rename(unfinished, template)
  return db
}
