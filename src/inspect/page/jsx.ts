// What JSX becomes; the bundler puts it wherever it is needed.
export { Fragment, h } from 'preact';
