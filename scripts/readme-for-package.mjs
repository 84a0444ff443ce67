// npm packs only what lies in the folder of a package, and the readme and the licence lie at the root.
//   prepack:  node ../../scripts/readme-for-package.mjs
//   postpack: node ../../scripts/readme-for-package.mjs --remove
import { copyFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

for (const name of ['README.md', 'LICENSE']) {
  const copy = fileURLToPath(new URL(`../packages/postbox/${name}`, import.meta.url))
  if (process.argv.includes('--remove')) rmSync(copy, { force: true })
  else copyFileSync(fileURLToPath(new URL(`../${name}`, import.meta.url)), copy)
}
