import { describe, expect, test } from 'vitest'
import { resolveNames } from './names.ts'
import { catalogueFrom, readCatalogue } from './read-catalogue.ts'

const names = resolveNames({ schema: 'My "Schema', table: 'Out\\box' })

describe('readCatalogue', () => {
  test('carries the names as parameters, as they were given', () => {
    const { text, values } = readCatalogue(names, { version: false })

    expect(values).toEqual([
      'My "Schema',
      JSON.stringify(
        ['', '_dead', '_delivered', '_handled', '_queues', '_operations', '_meta'].map(
          (suffix) => `Out\\box${suffix}`,
        ),
      ),
      'Out\\box_status',
      'Out\\box_replay',
    ])
    expect(text).not.toMatch(/My|Out/)
    expect(new Set(text.match(/\$\d+::\w+/g))).toEqual(
      new Set(['$1::text', '$2::text', '$3::text', '$4::text']),
    )
  })

  test('names one table in its text, quoted, where it reads the version', () => {
    const { text } = readCatalogue(names, { version: true })

    expect(text).toContain('from "My ""Schema"."Out\\box_meta"')
  })
})

describe('catalogueFrom', () => {
  test('gives back what was found', () => {
    expect(catalogueFrom([{ catalogue: '{"tables":[],"version":2}' }])).toEqual({ tables: [], version: 2 })
  })

  test('says so when the client renames columns', () => {
    expect(() => catalogueFrom([{ Catalogue: '{}' } as never])).toThrow(
      expect.objectContaining({ code: 'OUTBOX_UNKNOWN_HANDLE' }),
    )
  })
})
