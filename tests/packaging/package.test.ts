import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gzipSync } from 'node:zlib'
import { build, type Metafile } from 'esbuild'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type InstalledPackage, installPackage, repository, run, write } from './installed-package.ts'

describe('the packed package', () => {
  let installed: InstalledPackage

  beforeAll(async () => {
    installed = await installPackage()
  })

  afterAll(() => installed?.remove())

  test('holds the build, the sources, the readme and the licence', () => {
    for (const file of [
      'package.json',
      'README.md',
      'LICENSE',
      'dist/index.js',
      'dist/index.d.ts',
      'src/index.ts',
    ]) {
      expect(installed.files).toContain(file)
    }
  })

  test('holds nothing else', () => {
    const expected = /^(?:package\.json|README\.md|LICENSE|src\/.+\.ts|dist\/.+\.(?:js|d\.ts)(?:\.map)?)$/
    const forbidden = /\.test\.|\.tsbuildinfo$/

    expect(installed.files.filter((file) => !expected.test(file) || forbidden.test(file))).toEqual([])
  })

  test('holds no build of a source that is gone', () => {
    const built = installed.files.filter((file) => file.startsWith('dist/') && file.endsWith('.js'))
    const sourceOf = (file: string): string => file.replace(/^dist/, 'src').replace(/js$/, 'ts')

    expect(built.filter((file) => !existsSync(join(repository, 'packages/postbox', sourceOf(file))))).toEqual(
      [],
    )
  })

  test('brings no other package with it', async () => {
    const { stdout } = await run('npm', { args: ['ls', '--all', '--parseable'], cwd: installed.project })

    expect(stdout.trim().split('\n').slice(1)).toEqual([join(installed.project, 'node_modules/postbox')])
  })

  test('has an entry point that publint finds no fault with', async () => {
    const args = [installed.tarball, '--strict']

    await expect(run('publint', { args, cwd: repository })).resolves.toBeDefined()
  })

  test('has types that every module resolution for ES modules finds', async () => {
    const args = [installed.tarball, '--profile', 'esm-only']

    await expect(run('attw', { args, cwd: repository })).resolves.toBeDefined()
  })

  test('can be required by a CommonJS file', async () => {
    const script = "const { createOutbox } = require('postbox'); console.log(typeof createOutbox)"
    const file = write(installed.project, 'required.cjs', script)

    const { stdout } = await run(process.execPath, { args: [file], cwd: installed.project })

    expect(stdout).toBe('function\n')
  })

  test('has a test kit that needs nothing else', async () => {
    const script = `
      import { createTestOutbox } from 'postbox/testing'
      const test = await createTestOutbox({})
      test.outbox.subscribe('orders', ({ body }) => console.log(body))
      await test.outbox.publishNow('orders', 'handled')
      await test.dispose()
    `
    const file = write(installed.project, 'testing.mjs', script)

    const { stdout } = await run(process.execPath, { args: [file], cwd: installed.project })

    expect(stdout).toBe('handled\n')
  })

  test('costs a publisher less than 15 KB', async () => {
    const publisher = `
      import { createOutbox } from 'postbox'
      const outbox = createOutbox({})
      export const placeOrder = (tx) => outbox.publish(tx, 'orders', { orderId: 1 })
    `
    const entry = write(installed.project, 'publisher.js', publisher)

    const bundle = await build({
      entryPoints: [entry],
      bundle: true,
      minify: true,
      splitting: true,
      metafile: true,
      platform: 'node',
      format: 'esm',
      target: 'node20',
      outdir: join(installed.project, 'bundle'),
      write: false,
    })

    const { outputs } = bundle.metafile
    const loaded = chunksLoadedWith(
      Object.keys(outputs).find((name) => name.endsWith('publisher.js'))!,
      outputs,
    )
    const sources = loaded.flatMap((chunk) => Object.keys(outputs[chunk]!.inputs))
    const paths = loaded.map((chunk) => resolve(chunk))
    const contents = bundle.outputFiles.filter(({ path }) => paths.includes(path))
    const bytes = gzipSync(Buffer.concat(contents.map((file) => file.contents)), { level: 9 }).length
    console.info(`a bundle that only publishes: ${bytes} bytes gzip`)
    expect(contents).toHaveLength(loaded.length)
    expect(bytes).toBeLessThan(15_000)
    expect(sources.filter((source) => /\/(?:runtime|testing)\//.test(source))).toEqual([])
  })
})

/** The chunk and those it imports at once; what it imports when it is needed (the runtime) is not among them. */
function chunksLoadedWith(entry: string, outputs: Metafile['outputs']): string[] {
  const loaded = new Set([entry])
  for (const chunk of loaded) {
    const now = outputs[chunk]!.imports.filter(
      ({ kind, external }) => kind === 'import-statement' && !external,
    )
    for (const { path } of now) loaded.add(path)
  }
  return [...loaded]
}
