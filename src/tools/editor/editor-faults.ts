/** Invalid calls of the editor, and what to send instead, worded for the model. */

/** The call is invalid and cannot be executed. */
export class EditorError extends Error {}

export const isRequired = (name: string, command: string) =>
  new EditorError(`Parameter \`${name}\` is required for command: ${command}.`)

export const doesNotExist = (path: string) =>
  new EditorError(`The path ${path} does not exist. Please provide a valid path.`)

export const alreadyExists = (path: string) =>
  new EditorError(
    `File already exists at: ${path}. Cannot overwrite files using command \`create\`; use \`str_replace\`, or remove it first.`,
  )

export const mebibytes = (bytes: number) => `${Number((bytes / 1024 / 1024).toFixed(1))} MiB`

export const isDirectory = (path: string) =>
  new EditorError(`The path ${path} is a directory and only the \`view\` command can be used on directories.`)

export const isTooLarge = (path: string, size: number, limit: number) =>
  new EditorError(
    `${path} is too large (${mebibytes(size)}; the limit is ${mebibytes(limit)}). Use Bash for it: head, tail, grep or sed -n to read, sed -i or a script to change it.`,
  )
