import { existsSync, readdirSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { chosenBinaries } from './chosen-binaries.ts'

/** The embedded binaries have none: that of the chosen server, else of the path, else where Debian puts it. null: there is none. */
export function findPsql(): string | null {
  const debian = '/usr/lib/postgresql'
  const versions = existsSync(debian) ? readdirSync(debian).sort().reverse() : []
  const folders = [
    ...(chosenBinaries.binaries === undefined ? [] : [chosenBinaries.binaries]),
    ...(process.env['PATH'] ?? '').split(delimiter),
    ...versions.map((version) => join(debian, version, 'bin')),
  ]
  return folders.map((folder) => join(folder, 'psql')).find(existsSync) ?? null
}
