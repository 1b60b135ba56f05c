/** The zod of the executable: its schemas are the same, and take less memory. */
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { rolldown } from 'rolldown'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { leanPackages } from '../../scripts/executable/lean-packages.ts'

type Zod = typeof z
type Internals = { readonly _zod: { readonly traits: Set<string>; readonly parent?: unknown } }

async function leanZod(): Promise<Zod> {
  await using directory = await mkdtempDisposable(join(tmpdir(), 'lean-'))
  const [entry, file] = [join(directory.path, 'entry.js'), join(directory.path, 'zod.mjs')]
  const zod = join(import.meta.dirname, '../../node_modules/zod/index.js')
  await writeFile(entry, `export { z } from ${JSON.stringify(zod)}`)
  await using bundler = await rolldown({ input: entry, platform: 'node', plugins: [leanPackages()] })
  await bundler.write({ file })
  return ((await import(file)) as { z: Zod }).z
}

function schemasOf({ string, email, object, array, enum: oneOf }: Zod) {
  const name = string().min(1).max(9)
  const described = name.describe('A name.')
  const identified = object({ name: described.refine((text) => text !== 'x'), other: name }).meta({ id: 'Named' })
  const all = object({
    first: identified.describe('The first one.'),
    more: array(identified).optional(),
    email: email()
      .describe('An address.')
      .nullable()
      .meta({ examples: ['a@example.com'] }),
    kind: oneOf(['a', 'b']).default('a').describe('One of two.'),
  })
  return { name, described, all, further: described.describe('Another name.') }
}

test('schemas of the executable describe and check what those of the package do', async () => {
  const lean = await leanZod()
  const [ours, theirs] = [schemasOf(lean).all, schemasOf(z).all]
  expect(lean.toJSONSchema(ours)).toEqual(z.toJSONSchema(theirs))
  for (const first of [{ name: 'a', other: 'b' }, { name: 'x', other: 'b' }, { name: 'a' }])
    expect(ours.safeParse({ first, email: null }).error?.issues).toEqual(
      theirs.safeParse({ first, email: null }).error?.issues,
    )
  expect(ours instanceof lean.ZodObject && !(ours instanceof lean.ZodString)).toBe(true)
})

test('schemas of the executable share what they are, and keep no other schema for nothing', async () => {
  const { name, described, further } = schemasOf(await leanZod())
  const internals = (schema: unknown) => (schema as Internals)._zod
  expect(internals(described).traits).toBe(internals(name).traits)
  expect(internals(described).parent).toBeUndefined()
  expect(internals(further).parent).toBe(described)
})
