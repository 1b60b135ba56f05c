/** Fields of forms. */

/** The text of a field, without space around it; empty if there is no such field. */
export function textIn(form: FormData, name: string): string {
  const value = form.get(name)
  return typeof value === 'string' ? value.trim() : ''
}
