/** What follows from the table of settings: the fields of each part, and the names of the settings that have it. */
import type { z } from 'zod'
import type { Setting } from './settings.ts'
import { SETTINGS } from './settings.ts'

type SettingName = keyof typeof SETTINGS
type Part = 'create' | 'update' | 'stored' | 'shown'

/** The settings that have this part. */
export type NameIn<P extends Part> = {
  [K in SettingName]: (typeof SETTINGS)[K] extends Readonly<Record<P, z.ZodType>> ? K : never
}[SettingName]

/** The settings that are computed at a create. */
export type DerivedName = {
  [K in SettingName]: (typeof SETTINGS)[K]['from'] extends 'derived' ? K : never
}[SettingName]

type FieldsOf<P extends Part> = {
  [K in NameIn<P>]: (typeof SETTINGS)[K] extends Readonly<Record<P, infer Schema>> ? Schema : never
}

/** The fields of one part, for a `z.object`. */
export function fieldsOf<P extends Part>(part: P): FieldsOf<P> {
  const fields = Object.entries<Setting>(SETTINGS).map(([name, setting]) => [name, setting[part]] as const)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the entries that have the part, as the type says
  return Object.fromEntries(fields.filter(([, schema]) => schema !== undefined)) as FieldsOf<P>
}

/** The names of the settings that have this part. */
export function namesIn<P extends Part>(part: P): readonly NameIn<P>[] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the keys of the fields
  return Object.keys(fieldsOf(part)) as NameIn<P>[]
}
