// Bundles the library as it was at a commit into one file that plain Node runs: the process of the version before, in the tests of
// rolling deployments (docs/decisions/0026-previous-build.md).
//   node scripts/previous-build.mjs <commit>
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('..', import.meta.url))
const fixture = join(root, 'tests/rolling/previous-build.js')
// A dependency of the tests, not of this folder.
const { buildSync } = createRequire(join(root, 'tests/package.json'))('esbuild')

const given = process.argv[2]
if (given === undefined) {
  console.error('Which commit? node scripts/previous-build.mjs <commit>')
  process.exitCode = 1
} else {
  const commit = git('rev-parse', '--verify', `${given}^{commit}`)
  const folder = mkdtempSync(join(tmpdir(), 'postbox-previous-'))
  try {
    extract(commit, folder)
    bundle(commit, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
  console.log(`Wrote ${relative(root, fixture)}: ${commit}.`)
}

/** By an archive and not by a worktree: git need not know of it, and nothing is left to prune when this is interrupted. */
function extract(commit, folder) {
  const archive = join(folder, 'source.tar')
  git('archive', '--output', archive, commit, 'packages/postbox', 'tsconfig.base.json')
  execFileSync('tar', ['-xf', archive, '-C', folder])
}

function bundle(commit, folder) {
  buildSync({
    absWorkingDir: folder,
    entryPoints: ['packages/postbox/src/index.ts'],
    outfile: fixture,
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    // Names are kept: a stack trace out of it should say where.
    minifyWhitespace: true,
    logLevel: 'warning',
    banner: { js: headerOf(commit) },
  })
}

function headerOf(commit) {
  return [
    `// The library as it was at commit ${commit}, in one file. Not to be edited.`,
    `// Made by: node scripts/previous-build.mjs ${commit.slice(0, 7)}`,
  ].join('\n')
}

function git(...args) {
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
