// Removes what the build wrote. `tsc -b --clean` leaves the output of files that were since deleted or renamed,
// and npm would publish it.
import { readFileSync, rmSync } from 'node:fs'

const root = new URL('../', import.meta.url)
const { references } = JSON.parse(readFileSync(new URL('tsconfig.json', root), 'utf8'))

for (const { path } of references) {
  for (const output of ['dist', 'tsconfig.tsbuildinfo']) {
    rmSync(new URL(`${path}/${output}`, root), { recursive: true, force: true })
  }
}
