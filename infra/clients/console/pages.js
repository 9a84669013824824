// The pages in the order of the navigation. Each is pages/<name>.js with its strings, loaded when first shown.
export const PAGES = "start connect documents ask conversations knowledge experiences devices try_it".split(" ");
