// A part's sheet goes with it as its export `style`: the build puts it there.
declare module "*.css";
